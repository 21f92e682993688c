//! The frame of all pages: head, navigation, foot. It names the policy that the server sends with each of them.

use crate::assets;
use crate::text::T;
use dualplane_incidents::{Filter, encode};
use maud::{DOCTYPE, Markup, html};

/// The `Content-Security-Policy` of every page: all that is loaded comes from the server itself, nothing stands inline,
/// nothing frames it, and no form leads elsewhere.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What is the same on all pages of one answer.
#[derive(Debug, Clone, Default)]
pub struct Frame<'a> {
    /// Where the server lies below its host: empty, or `/some/where` behind a proxy. No slash at its end.
    pub base: &'a str,
    /// Who looks; shown in the corner.
    pub viewer: Option<&'a str>,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    /// Where new incidents are announced (server-sent events), below the base; nothing is live without.
    pub events: Option<&'a str>,
    /// Where whoever signed in signs out, below the base; nobody did without.
    pub sign_out: Option<&'a str>,
}

/// A room of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Incidents,
    Fleet,
    Gpus,
    Capacity,
    None,
}

const ROOMS: [(Room, &str, &str); 4] = [
    (Room::Incidents, "Incidents", "/"),
    (Room::Fleet, "Fleet", "/fleet"),
    (Room::Gpus, "GPUs", "/gpus"),
    (Room::Capacity, "Capacity", "/capacity"),
];

impl Frame<'_> {
    /// An address below the base.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The page of an incident.
    pub(crate) fn incident(&self, id: &str) -> String {
        self.to(&format!("/incidents/{}", encode(id)))
    }

    /// The list that a filter shows.
    pub(crate) fn list(&self, filter: &Filter) -> String {
        match filter.to_query() {
            q if q.is_empty() => self.to("/"),
            q => self.to(&format!("/?{q}")),
        }
    }

    fn asset(&self, name: &str) -> String {
        self.to(&format!("/{}", assets::path(name)))
    }

    /// The whole page. `scripts` are loaded in this order; a page says without any of them what it says.
    pub(crate) fn page(&self, title: &str, room: Room, scripts: &[&str], main: &Markup) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="same-origin";
                    title { (T(title)) " · dualplane" }
                    link rel="icon" href=(T(&self.asset("icon.svg"))) type="image/svg+xml";
                    @if scripts.contains(&"planes.js") {
                        link rel="stylesheet" href=(T(&self.asset("uPlot.min.css")));
                    }
                    link rel="stylesheet" href=(T(&self.asset("plot.css")));
                    link rel="stylesheet" href=(T(&self.asset("page.css")));
                    @for script in scripts {
                        // A module has a scope of its own; the library of the plots is a plain script, with a name for all.
                        @if script.ends_with(".min.js") {
                            script src=(T(&self.asset(script))) defer {}
                        } @else {
                            script src=(T(&self.asset(script))) type="module" {}
                        }
                    }
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    header.bar {
                        a.brand href=(T(&self.to("/"))) { span.mark aria-hidden="true" {} "dualplane" }
                        nav aria-label="Pages" {
                            ul {
                                @for (of, name, path) in ROOMS {
                                    li {
                                        a href=(T(&self.to(path))) aria-current=[(of == room).then_some("page")] { (name) }
                                    }
                                }
                            }
                        }
                        @if let Some(viewer) = self.viewer {
                            span.viewer { span.off { "Signed in as " } (T(viewer)) }
                        }
                        @if let Some(out) = self.sign_out {
                            form.out method="post" action=(T(&self.to(out))) { button { "Sign out" } }
                        }
                    }
                    main id="main" tabindex="-1" { (main) }
                    footer { "dualplane " (env!("CARGO_PKG_VERSION")) " · times are UTC" }
                }
            }
        }
        .into_string()
    }
}

/// The page of an error: what went wrong, and what to do.
#[must_use]
pub fn problem(frame: &Frame<'_>, title: &str, what: &str) -> String {
    let main = html! {
        h1 { (T(title)) }
        p { (T(what)) }
        p { a href=(T(&frame.to("/"))) { "All incidents" } }
    };
    frame.page(title, Room::None, &[], &main)
}
