//! The Event that our own agent puts on a pod: it quotes the first error of one instance, which is that instance's only.

use super::model::Event;

/// Reason of every such Event.
pub const VERDICT_REASON: &str = "DualplaneVerdict";
/// Hexadecimal digits of a container's id at the end of an incident's name.
const SHORT: usize = 8;

impl Event {
    /// The instance whose verdict it tells, by the first digits of its container's id.
    #[must_use]
    pub fn told_instance(&self) -> Option<&str> {
        let (_, after) = self.message.rsplit_once("; incident ").filter(|_| self.reason == VERDICT_REASON)?;
        let (_, id) = after.split(" on node ").next()?.rsplit_once('-')?;
        (id.len() == SHORT && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, VERDICT_REASON};

    fn told(reason: &str, message: &str) -> Option<String> {
        let event = Event { reason: reason.into(), message: message.into(), ..Event::default() };
        event.told_instance().map(str::to_owned)
    }

    #[test]
    fn an_incident_ends_with_the_containers_id() {
        let message = "x; incident quoted; incident 20261123T052348.731Z-deaths-llm-0-server-0-5b094902 on node gpu-node-1";
        assert_eq!(told(VERDICT_REASON, message).as_deref(), Some("5b094902"));
        assert_eq!(told("BackOff", message), None);
        // A name that was cut off, and a kill of which no id was known.
        assert_eq!(told(VERDICT_REASON, "x; incident 20261123T052348.731Z-deaths-llm-0-ser"), None);
        assert_eq!(
            told(VERDICT_REASON, "x; incident 20261123T052348.731Z-deaths-llm-0-server-0 on node n"),
            None
        );
    }
}
