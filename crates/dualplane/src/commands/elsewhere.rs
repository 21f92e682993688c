//! Commands that this build does not have: of a node on systems that are none, and all that ask a cluster or a node where
//! only files are read. The same names and flags, and an error that says where to run them.

macro_rules! absent {
    ($why:expr; $($name:ident: $args:ty),*) => {$(
        pub(in crate::commands) mod $name {
            use crate::commands::Failure;
            use crate::exit::Code;

            pub(in crate::commands) fn run(_: &$args) -> Result<Code, Failure> {
                Err($why(stringify!($name)))
            }
        }
    )*};
}

#[cfg(not(all(feature = "live", target_os = "linux")))]
pub(super) mod node {
    /// Why there is no such command here.
    #[cfg(feature = "live")]
    const WHY: fn(&'static str) -> crate::commands::Failure = crate::commands::Failure::LinuxOnly;
    #[cfg(not(feature = "live"))]
    const WHY: fn(&'static str) -> crate::commands::Failure = crate::commands::Failure::NotBuilt;

    absent!(super::WHY;
        agent: crate::args::AgentArgs,
        guard: crate::args::GuardArgs,
        incidents: crate::args::IncidentsCommand,
        measure: crate::args::MeasureArgs,
        preflight: crate::args::PreflightArgs,
        top: crate::args::TopArgs
    );
}

#[cfg(not(feature = "live"))]
pub(super) mod cluster {
    const WHY: fn(&'static str) -> crate::commands::Failure = crate::commands::Failure::NotBuilt;

    absent!(super::WHY;
        apply: crate::args::ApplyArgs,
        capture: crate::args::CaptureArgs,
        map: crate::args::MapArgs,
        rollback: crate::args::RollbackArgs
    );

    pub(in crate::commands) mod workload {
        use dualplane_tune::Proposal;

        use crate::args::TuneArgs;
        use crate::commands::Failure;

        /// No workload of a cluster can be tuned.
        pub(in crate::commands) enum Workload {}

        macro_rules! never {
            ($($name:ident(&self $(, $arg:ident: $kind:ty)*) -> $out:ty;)*) => {
                impl Workload {
                    pub(in crate::commands) fn find(_: &TuneArgs, _: &str) -> Result<Self, Failure> {
                        Err(Failure::NotBuilt("access to a cluster"))
                    }
                    $(pub(in crate::commands) fn $name(&self $(, $arg: $kind)*) -> $out {
                        match *self {}
                    })*
                }
            };
        }

        never! {
            command(&self) -> &[String];
            engine(&self) -> &str;
            name(&self) -> String;
            confirm(&self) -> Result<(), Failure>;
            make(&self, _p: &Proposal) -> Result<bool, Failure>;
            back(&self) -> Result<(), Failure>;
            settles(&self) -> Result<bool, Failure>;
        }
    }

    pub(in crate::commands) mod pods {
        use crate::args::SelectArgs;
        use crate::commands::Failure;

        /// No object of a cluster can be asked about.
        pub(in crate::commands) enum PodSelection {}

        pub(in crate::commands) fn wanted(
            _: &[String],
            select: &SelectArgs,
        ) -> Result<Option<PodSelection>, Failure> {
            let asks = select.failed || select.all_namespaces || select.selector.is_some();
            if asks { Err(Failure::NotBuilt("access to a cluster")) } else { Ok(None) }
        }

        pub(in crate::commands) fn meant(word: &str) -> String {
            match word.split_once('/') {
                Some((kind, _)) if !kind.is_empty() && !kind.contains('.') => {
                    "check the path; this build reads files only: for objects of a cluster, build it with all features \
                    (cargo build --release -p dualplane)"
                        .into()
                }
                _ => "check the path; a TARGET is a directory, one or more files, or - for standard input".into(),
            }
        }
    }
}
