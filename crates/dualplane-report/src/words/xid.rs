//! Words for the GPU driver's Xid events.

use dualplane_core::verdict::proof::Xid;

pub(super) fn sentence(proof: &Xid) -> String {
    match proof {
        Xid::Event { code, pci, name } => {
            format!("Xid {code} on {pci}: {}", name.as_deref().unwrap_or("not in the catalogue"))
        }
        Xid::Further { code, name: Some(name) } => format!("Xid {code} {name}"),
        Xid::Further { code, name: None } => format!("Xid {code}"),
        Xid::CausedCleanup(code) => format!("an Xid 45 says \"caused by previous Xid {code}\""),
        Xid::NoLine(code) => format!("the evidence does not contain the line of Xid {code} itself"),
        Xid::None => "the evidence contains no Xid".to_owned(),
        Xid::OftenByProgram => {
            "this Xid is usually caused by the program (an illegal access in a GPU kernel), not by hardware"
                .to_owned()
        }
        Xid::Consequence(code) => format!("Xid {code} is a consequence or informational"),
        Xid::OnlyConsequence(code) => {
            format!("Xid {code} is only a clean-up or informational message; it is a consequence")
        }
        Xid::OtherGpu { own, .. } if own.is_empty() => {
            "the pod asks for no GPU, and nothing says that it has another way to one".to_owned()
        }
        Xid::OtherGpu { own, address } => format!("the pod's GPUs are {}, not {address}", own.join(", ")),
        Xid::Gauge => {
            "the gauge keeps the last Xid, which may be older than this failure; the kernel log has the time"
                .to_owned()
        }
    }
}
