//! The commands of a node, on systems that are none: the same names and flags, and an error that says where to run them.

macro_rules! on_linux {
    ($($name:ident: $args:ty),*) => {$(
        pub(super) mod $name {
            use crate::commands::Failure;
            use crate::exit::Code;

            pub(in crate::commands) fn run(_: &$args) -> Result<Code, Failure> {
                Err(Failure::LinuxOnly(stringify!($name)))
            }
        }
    )*};
}

on_linux!(
    agent: crate::args::AgentArgs,
    incidents: crate::args::IncidentsCommand,
    preflight: crate::args::PreflightArgs,
    top: crate::args::TopArgs
);
