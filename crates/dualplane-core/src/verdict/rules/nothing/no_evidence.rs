//! Neither a log nor an object is at hand, or only a text that is neither.

use super::{Beats, Judged, Rule, Stage, decided, has_objects, unmet};
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::Log;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "no_evidence",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "there is no log, object or metric, or only a text in which no line is known",
    near_miss: "a log of one line",
    beats: &[Beats::rule("end_not_shown", "without evidence, this is not a finding")],
    source: "own",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.facts.has_life() || has_objects(case) {
        return Err(unmet("there is a log, an object or a metric"));
    }
    let texts = case.facts.logs.iter().filter(|l| l.lines > 0);
    let supports: Vec<Cited> = texts
        .take(4)
        .map(|l| {
            Cited::at(Log::NothingKnown { lines: l.total() }, &Place { file: l.file.clone(), line: None })
        })
        .collect();
    // A file of which nothing could be read, where no other is at hand.
    let unread = case.bundle.gaps.iter().filter(|g| case.bundle.files.contains(&g.what)).take(4);
    let unread: Vec<Cited> = unread
        .map(|g| Cited::at(Log::Unreadable(g.why.clone()), &Place { file: g.what.clone(), line: None }))
        .collect();
    if !unread.is_empty() && supports.is_empty() {
        let summary = "what was given could not be read: there is no evidence to judge";
        return Ok(decided(Class::Unknown, Phase::Unknown, Confidence::Low, summary, unread));
    }
    let summary = if let Some(listed) = listed(case) {
        listed
    } else if supports.is_empty() {
        "there is no evidence to judge"
    } else {
        "the text holds no log, status, event or metric that is known: there is no evidence to judge"
    };
    Ok(decided(Class::Unknown, Phase::Unknown, Confidence::Low, summary, supports))
}

/// What a table is that was understood and that tells of no end.
fn listed(case: &Case<'_>) -> Option<&'static str> {
    if !case.bundle.autoscalers.is_empty() {
        return Some(
            "this lists autoscalers: how many replicas a workload may get, and nothing of how one ended",
        );
    }
    let budgets = !case.bundle.disruption_budgets.is_empty();
    budgets.then_some(
        "this lists disruption budgets: how many pods a drain may evict, and nothing of how one ended",
    )
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, judged, log, near_miss};

    #[test]
    fn nothing_is_no_finding() {
        holds(&RULE, &[]);
    }

    #[test]
    fn a_shopping_list_is_none() {
        holds(&RULE, &[log("milk\neggs\nbread\n")]);
    }

    #[test]
    fn a_list_of_autoscalers_or_budgets_tells_of_no_end() {
        for (table, named) in [
            (
                "NAME      REFERENCE        TARGETS        MINPODS   MAXPODS   REPLICAS   AGE\n\
                 llm-hpa   Deployment/llm   cpu: 12%/80%   1         8         6          12d\n",
                "autoscalers",
            ),
            (
                "NAME      MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE\n\
                 llm-pdb   1               N/A               0                     12d\n",
                "disruption budgets",
            ),
        ] {
            let summary = judged(&[log(table)]).summary;
            assert!(summary.contains(named), "{summary}");
        }
    }

    #[test]
    fn a_line_is_something() {
        near_miss(
            &RULE,
            "end_not_shown",
            &[log("INFO 06-18 08:01:00 [api_server.py:1977] vLLM API server\n")],
        );
    }
}
