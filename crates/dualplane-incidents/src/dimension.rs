//! What incidents are counted and filtered by.

macro_rules! dimensions {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $title:literal;)+) => {
        /// A property that many incidents share.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Dimension { $($(#[$doc])* $variant),+ }

        impl Dimension {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in a link and in a document.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Its name for people.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

dimensions! {
    /// Class of the verdict.
    Class = "class", "class";
    /// Memory plane.
    Plane = "plane", "plane";
    /// What the server was doing.
    Phase = "phase", "phase";
    /// How sure.
    Confidence = "confidence", "confidence";
    /// Cluster.
    Cluster = "cluster", "cluster";
    /// Namespace.
    Namespace = "namespace", "namespace";
    /// Workload.
    Owner = "owner", "workload";
    /// Pod.
    Pod = "pod", "pod";
    /// Container.
    Container = "container", "container";
    /// Node.
    Node = "node", "node";
    /// Image.
    Image = "image", "image";
    /// Model.
    Model = "model", "model";
    /// Engine.
    Engine = "engine", "engine";
    /// Version of the engine.
    EngineVersion = "engine_version", "engine version";
    /// UUID of a card.
    Gpu = "gpu", "GPU";
    /// Name of a card.
    GpuName = "gpu_name", "kind of GPU";
    /// Version of the driver.
    Driver = "driver", "driver";
    /// Number of an Xid.
    Xid = "xid", "Xid";
}

impl Dimension {
    /// Reads its name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|d| d.as_str() == word)
    }

    /// What a fleet is counted by: few values each.
    pub const COUNTED: &'static [Self] = &[
        Self::Plane,
        Self::Model,
        Self::Image,
        Self::Engine,
        Self::EngineVersion,
        Self::Node,
        Self::Gpu,
        Self::GpuName,
        Self::Driver,
        Self::Cluster,
        Self::Namespace,
        Self::Owner,
        Self::Xid,
    ];

    /// It is the same for all deaths of a cause.
    #[must_use]
    pub fn is_of_the_cause(self) -> bool {
        matches!(
            self,
            Self::Class | Self::Plane | Self::Cluster | Self::Namespace | Self::Owner | Self::Container
        )
    }
}
