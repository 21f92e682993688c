//! Exit codes: one table, printed by `dualplane --help` and `docs/exit-codes.md`.

use std::process::ExitCode;

use dualplane_base::Class;
use dualplane_core::verdict::pressure::Bound;
use dualplane_plan::Verdict;
use dualplane_plan::preflight::Outcome;

/// A documented exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// A report was made.
pub(crate) const OK: Code = Code(0);
/// A bug in dualplane: please report it.
pub(crate) const BUG: Code = Code(1);
/// The command line is wrong.
pub(crate) const USAGE: Code = Code(2);
/// The target does not exist or cannot be read.
pub(crate) const UNREADABLE: Code = Code(3);
/// The target holds nothing that can be used as evidence.
pub(crate) const NO_EVIDENCE: Code = Code(4);
/// A check found something: a problem in own knowledge, a figure below its bound.
pub(crate) const BELOW_BOUND: Code = Code(5);

/// `plan` and `fit`: the GPU plane of this engine, version or architecture is not known.
pub(crate) const UNSUPPORTED: Code = Code(6);

/// `apply` and `rollback`: nothing was changed.
pub(crate) const NOT_CHANGED: Code = Code(7);
/// `apply` and `rollback`: whether it was changed is not known.
pub(crate) const UNCLEAR: Code = Code(8);

/// `preflight`: it would fit, and somebody holds memory now.
pub(crate) const WAIT: Code = Code(11);
/// `preflight`: it never fits here.
pub(crate) const CANNOT_FIT: Code = Code(12);
/// `preflight`: a fact that decides is missing.
pub(crate) const CANNOT_TELL: Code = Code(13);

/// `lint`: warnings, or notes where these are asked for.
pub(crate) const LINT_WARNINGS: Code = Code(17);
/// `lint`: errors.
pub(crate) const LINT_ERRORS: Code = Code(18);

/// `gate`: a check failed.
pub(crate) const GATE_FAILS: Code = Code(50);
/// `gate`: nothing failed, and not all that the policy demands is shown.
pub(crate) const GATE_NOT_SHOWN: Code = Code(51);

/// `measure`: it was interrupted, and what was measured until then was written. What shells say of Ctrl-C.
pub(crate) const INTERRUPTED: Code = Code(130);

/// All codes with their meaning, for help and docs.
pub(crate) const TABLE: &[(Code, &str)] = &[
    (OK, "a report was printed, whatever the verdict"),
    (BUG, "a bug in dualplane"),
    (USAGE, "wrong command line"),
    (UNREADABLE, "the target does not exist or cannot be read"),
    (NO_EVIDENCE, "the target contains no usable evidence"),
    (
        BELOW_BOUND,
        "a check failed: `knowledge check` found a problem, `upgrade-check` a document that is not read, or `dev corpus` a figure below its bound",
    ),
    (
        UNSUPPORTED,
        "`plan` and `fit`: this engine, version or architecture is not supported, or nothing to `--emit` holds",
    ),
    (NOT_CHANGED, "`apply` and `rollback`: nothing was changed: not confirmed, refused or not possible"),
    (UNCLEAR, "`apply` and `rollback`: no response arrived, so the result is unknown"),
    (WAIT, "`preflight`: wait; it would fit, but another process uses the memory now"),
    (CANNOT_FIT, "`preflight`: it cannot fit on this machine; the report says what to change"),
    (CANNOT_TELL, "`preflight`: unknown; a decisive fact is missing"),
    (LINT_WARNINGS, "`lint`: a rule found a warning, and none an error"),
    (LINT_ERRORS, "`lint`: a rule found an error"),
    (GATE_FAILS, "`gate`: a check failed"),
    (GATE_NOT_SHOWN, "`gate`: no check failed, and a number that the policy demands is not shown"),
    (
        INTERRUPTED,
        "`measure`: it was interrupted (Ctrl-C, SIGTERM); what was measured until then was written",
    ),
];

/// With `--exit-code`, the class of the verdict is the exit code; of several incidents, the highest.
pub(crate) fn of_class(class: Class) -> Code {
    Code(match class {
        Class::NotMemory => 0,
        Class::Unknown => 10,
        Class::HostOomKilled => 20,
        Class::HostNodeOom => 21,
        Class::HostAllocFailure => 22,
        Class::CudaOomLoad => 30,
        Class::CudaOomRuntime => 31,
        Class::KvCacheCapacity => 32,
        Class::Fragmentation => 33,
        Class::GpuCapacityConflict => 34,
        Class::MigSliceTooSmall => 35,
        Class::XidHardware => 40,
    })
}

/// With `--exit-code`: nothing that memory ended, but a plane is under pressure; else the class.
pub(crate) fn of_verdict(verdict: &dualplane_core::verdict::Verdict) -> Code {
    let bound = verdict.pressure.as_ref().map_or(Bound::None, |p| p.bound);
    of_pressure(bound)
        .filter(|_| matches!(verdict.class, Class::NotMemory | Class::Unknown))
        .unwrap_or_else(|| of_class(verdict.class))
}

/// The codes of pressure.
const PRESSURES: &[(Bound, &str)] = &[
    (Bound::Host, "pressure on host RAM"),
    (Bound::Gpu, "pressure on GPU memory"),
    (Bound::Both, "pressure on both"),
];

fn of_pressure(bound: Bound) -> Option<Code> {
    match bound {
        Bound::None => None,
        Bound::Host => Some(Code(14)),
        Bound::Gpu => Some(Code(15)),
        Bound::Both => Some(Code(16)),
    }
}

/// With `plan --exit-code`: the class of what ends the start, as `triage` would find it.
pub(crate) fn of_plan(verdict: Verdict, class: Option<Class>) -> Code {
    match verdict {
        Verdict::Fits => OK,
        Verdict::Uncertain => of_class(Class::Unknown),
        Verdict::Refused => of_class(class.unwrap_or(Class::KvCacheCapacity)),
    }
}

/// What `preflight` says; `allowed`: also where it cannot tell.
pub(crate) fn of_preflight(outcome: Outcome, allowed: bool) -> Code {
    match outcome {
        Outcome::Go => OK,
        Outcome::Wait => WAIT,
        Outcome::CannotFit => CANNOT_FIT,
        Outcome::Unknown if allowed => OK,
        Outcome::Unknown => CANNOT_TELL,
    }
}

/// The text behind `--help`.
pub(crate) fn help() -> String {
    let mut out = String::from("Exit codes:\n");
    for (code, meaning) in TABLE {
        out.push_str(&format!("  {:>3}  {meaning}\n", code.0));
    }
    out.push_str("\nWith triage --exit-code:\n");
    for class in Class::ALL {
        out.push_str(&format!("  {:>3}  {class}\n", of_class(*class).0));
    }
    for (code, what) in PRESSURES.iter().filter_map(|(b, what)| Some((of_pressure(*b)?, what))) {
        out.push_str(&format!("  {:>3}  {what}, and no class of memory\n", code.0));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<u8> = TABLE.iter().map(|(c, _)| c.0).collect();
        codes.extend(Class::ALL.iter().map(|c| of_class(*c).0).filter(|c| *c != 0));
        let n = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), n);
    }
}
