//! Where an engine's own flags stand: people write them where ours do.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use dualplane_plan::cli;

/// An engine's flag among those of a command that takes an engine's command line: the error says where it belongs.
pub(crate) fn with_place_of_flags(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::StyledStr(s)) => Some(s.to_string()),
        _ => None,
    };
    let takes_command = text(ContextKind::Usage).is_some_and(|u| u.contains("[-- <COMMAND>"));
    let flag = text(ContextKind::InvalidArg).filter(|f| cli::is_engines(f));
    if let (ErrorKind::UnknownArgument, true, Some(flag)) = (error.kind(), takes_command, flag) {
        let tip = format!("the engine's own flags stand behind `--`: MODEL --gpu NAME -- {flag} …");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::with_place_of_flags;
    use crate::args::Args;

    fn said(words: &str) -> String {
        let error = Args::command().try_get_matches_from(words.split(' ')).unwrap_err();
        with_place_of_flags(error).to_string()
    }

    #[test]
    fn an_engines_flag_stands_behind_the_dashes() {
        let text = said("dualplane plan qwen3-14b --gpu H100 --max-model-len 8192");
        assert!(text.contains("behind `--`: MODEL --gpu NAME -- --max-model-len …"), "{text}");
        assert!(!text.contains("'--model'"), "{text}");
    }

    #[test]
    fn a_slip_in_a_flag_of_ours_is_told_as_before() {
        let text = said("dualplane plan qwen3-14b --gpus H100");
        assert!(text.contains("'--gpu'") && !text.contains("behind"), "{text}");
        let text = said("dualplane triage . --max-model-len 8192");
        assert!(!text.contains("behind"), "{text}");
    }
}
