//! The name that the program was called by: `kubectl dualplane` runs it as `kubectl-dualplane`.

use std::path::Path;

/// `dualplane` or `kubectl dualplane`, for help, errors and commands to paste.
pub(crate) fn name() -> &'static str {
    of(std::env::args_os().next().as_deref().map(Path::new))
}

fn of(program: Option<&Path>) -> &'static str {
    let stem = program.and_then(Path::file_stem).and_then(|s| s.to_str()).unwrap_or_default();
    if stem == "kubectl-dualplane" { "kubectl dualplane" } else { "dualplane" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_calls_its_plugins_by_their_file() {
        for (program, want) in [
            ("/usr/local/bin/kubectl-dualplane", "kubectl dualplane"),
            ("kubectl-dualplane.exe", "kubectl dualplane"),
            ("./dualplane", "dualplane"),
            ("", "dualplane"),
        ] {
            assert_eq!(of(Some(Path::new(program))), want, "{program}");
        }
    }
}
