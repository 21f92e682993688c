// Which pages there are, and how they are looked at.
export const LOOKS = {
  light: { viewport: { width: 1280, height: 900 } },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true },
};

export const ROOMS = ["/", "/?plane=gpu", "/list/empty.html", "/list/refused.html", "/list/nothing.html", "/fleet", "/fleet-empty", "/gpus", "/gpus-empty", "/card", "/capacity", "/capacity-empty", "/incidents/both-planes?print"];

/// A page as the name of a file.
export const fileName = (path) => path.replace(/[^a-z0-9-]+/gi, "_");
