//! Two hundred texts that run where a page does not escape: ways out of each place × ways to run.

/// Out of text, attributes, and elements whose text is raw.
const OUT: [&str; 10] = [
    "",
    "\"",
    "'",
    ">",
    "\">",
    "' >",
    "</script>",
    "</pre></title>",
    "--></style>",
    "&quot;&gt;\u{202e}\u{0}",
];

/// `ran` is what the tests in a browser look for.
const RUN: [&str; 20] = [
    "<script>ran(1)</script>",
    "<SCRIPT SRC=data:text/javascript,ran(2)></SCRIPT>",
    "<img src=x onerror=ran(3)>",
    "<img/src=\"x\"/onerror=ran(4)//",
    "<svg onload=ran(5)>",
    "<svg><script>ran(6)</script></svg>",
    "<svg><animate onbegin=ran(7) attributeName=x dur=1s>",
    "<iframe srcdoc='<script>parent.ran(8)</script>'></iframe>",
    "<iframe src=javascript:parent.ran(9)></iframe>",
    "<body onload=ran(10)>",
    "<details open ontoggle=ran(11)>x</details>",
    "<input autofocus onfocus=ran(12)>",
    " autofocus tabindex=0 onfocus=ran(13) x=",
    " style=animation-name:x onanimationstart=ran(14) ",
    "javascript:ran(15)",
    "<math><mtext><table><mglyph><style><img src=x onerror=ran(16)>",
    "<noscript><p title=\"</noscript><img src=x onerror=ran(17)>\">",
    "<template><img src=x onerror=ran(18)></template><object data=javascript:ran(18)>",
    "<form action=javascript:ran(19)><button autofocus onfocus=ran(19)>x</button></form>",
    "<meta http-equiv=refresh content='0;url=javascript:ran(20)'><base href=//example.invalid/>",
];

/// All of them.
pub(crate) fn payloads() -> Vec<String> {
    OUT.iter().flat_map(|out| RUN.iter().map(move |run| format!("{out}{run}"))).collect()
}
