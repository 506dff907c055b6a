//! The list.

/// Minutes that a run of all campaigns is given.
pub const WHOLE_RUN_MINUTES: u64 = 60;

/// Something that is claimed, and the program that shows it.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Short name.
    pub name: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// What runs in the folder of the workspace: `cargo`, for the packages that `./x test` builds,
    /// so that all campaigns and the tests share one build, or a program of that build.
    /// `MINUTES` stands for the campaign's share of the time, at least 1.
    pub command: &'static str,
    /// Percent of a run's time that is its own, where as much is left; 0 for one that takes what it
    /// needs.
    pub share: u64,
    /// It runs in the long form that `NEARPM_THOROUGH` asks for.
    pub long: bool,
    /// What runs was built before, so that it runs on a machine without Rust, too:
    /// [`crate::packed`]. The others build, prove or map something.
    pub is_packed: bool,
    /// Counts that a run of [`WHOLE_RUN_MINUTES`] has to reach: one that misses one ends with
    /// failure.
    pub aims: &'static [(&'static str, u64)],
}

/// All campaigns, in the order in which they run: what is quick comes first, then what takes the
/// time that it is given, so that nothing can take it away.
pub const ALL: &[Campaign] = &[
    Campaign {
        name: "model",
        claim: "each litmus test of the ordering model reaches exactly its allowed states",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --test litmus -- --nocapture every_test_reaches",
        share: 0,
        long: false,
        is_packed: true,
        aims: &[("tests", 60)],
    },
    Campaign {
        name: "litmus-card",
        claim: "what the transaction-level card shows in a litmus test, the model allows",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --test litmus -- --nocapture what_the_card_shows",
        share: 0,
        long: true,
        is_packed: true,
        aims: &[("tests", 60)],
    },
    Campaign {
        name: "gate",
        claim: "the gate that orders transactions, and the locks, exclude and let everybody in, in every order of events up to four preemptions (loom)",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --test gate -- --nocapture",
        share: 0,
        long: false,
        is_packed: true,
        aims: &[("programs", 9)],
    },
    Campaign {
        name: "heap-orders",
        claim: "threads that take, free, claim and log objects of a direct pool get no byte twice, lose no room and overlook no record that is not home; who has waited has its commits durable, and who reads a command back hears of its own; in every order of events up to two preemptions (loom)",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --lib -- --nocapture in_every_order",
        share: 0,
        long: false,
        is_packed: true,
        aims: &[("programs", 14)],
    },
    Campaign {
        name: "explorer",
        claim: "no explored crash state of random programs, nor of a crash in their recovery, loses or tears anything",
        command: "target/release/nearpm-explorer explore --minutes MINUTES",
        share: 7,
        long: false,
        is_packed: true,
        aims: &[("states", 1_000_000)],
    },
    Campaign {
        name: "every-cycle",
        claim: "a power cut in any clock cycle of the RTL loses nothing accepted; with too little energy it is reported",
        command: "target/release/every-cycle --minutes MINUTES",
        share: 25,
        long: false,
        is_packed: true,
        aims: &[
            ("scenarios", 100),
            ("cycles", 100_000_000),
            ("saves cut", 40),
            ("replays cut", 20),
            ("second replays cut", 20),
            ("recoveries cut", 12),
            ("cuts in second recoveries", 600),
        ],
    },
    Campaign {
        name: "two-ports",
        claim: "a power cut in any clock cycle of the work of a card with two memory ports loses nothing accepted",
        command: "target/release/every-cycle --memory-ports 2 --minutes MINUTES",
        share: 6,
        long: false,
        is_packed: true,
        aims: &[("scenarios", 100), ("cycles", 10_000_000)],
    },
    Campaign {
        name: "litmus-rtl",
        claim: "what the RTL shows in a litmus test, one card cut at every cycle and several at random, the model allows",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --test litmus_on_rtl --test litmus_on_rtl_cards -- --nocapture",
        share: 0,
        long: true,
        is_packed: true,
        aims: &[("tests", 60)],
    },
    Campaign {
        name: "steps",
        claim: "without a write-back, an invalidate, a drain or a fence of the library on the way to memory or to a card, some power cut loses or tears something, or the step has its reason",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --lib -- --nocapture each_step_on_the_way",
        share: 0,
        long: true,
        is_packed: true,
        aims: &[("noticed", 120)],
    },
    Campaign {
        name: "planted-rtl",
        claim: "each fault planted into the RTL or its firmware is seen by its scenario",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --test planted_faults -- --nocapture --test-threads 1",
        share: 0,
        long: false,
        is_packed: false,
        aims: &[("faults", 64)],
    },
    Campaign {
        name: "proofs",
        claim: "properties of the generated Verilog hold in every reachable state, and their mutants are refuted",
        command: "target/release/nearpm-proofs --mutants",
        share: 0,
        long: false,
        is_packed: false,
        aims: &[("proved", 23)],
    },
    Campaign {
        name: "mutants",
        claim: "each fault planted into driver or library is noticed by the tests named for it",
        command: "target/release/nearpm-mutants",
        share: 0,
        long: false,
        is_packed: false,
        aims: &[("noticed", 80)],
    },
    Campaign {
        name: "coverage",
        claim: "the scenarios on the whole card execute each line and toggle each bit of its Verilog that is neither waived nor listed as open",
        command: "target/release/nearpm-verification coverage",
        share: 0,
        long: false,
        is_packed: false,
        aims: &[("covered", 240_000)],
    },
    Campaign {
        name: "fuzz",
        claim: "whatever a pool holds and whatever arrives at the command pages is answered, and nothing else is touched; whatever program the checker of firmware takes does what it says, also behind power cuts, on both cards",
        command: "cargo test --release --locked --workspace --exclude nearpm-stores --test bad_input -- --nocapture takes_anything",
        share: 0,
        long: true,
        is_packed: true,
        aims: &[
            ("inputs of the RTL's units", 2_000),
            ("inputs of the command port", 50_000),
            ("inputs of the pool opener", 200_000),
            ("inputs of the units", 25_000),
        ],
    },
    Campaign {
        name: "random-pins",
        claim: "whatever arrives at the card's pins, and whatever firmware and save it finds, is answered by the rules of its ports, loads of lines that no command touches give what was stored, and a loss is reported only where there is one",
        command: "target/release/random-pins --memories 16",
        share: 0,
        long: false,
        is_packed: true,
        aims: &[("conflicts held", 10_000), ("power-ups", 200)],
    },
];

/// The campaign of this name.
pub fn named(name: &str) -> Option<&'static Campaign> {
    ALL.iter().find(|campaign| campaign.name == name)
}

impl Campaign {
    /// Minutes that it gets of a run of so many, `left` of which are left; 0 for what it needs.
    pub fn minutes(&self, all: u64, left: u64) -> u64 {
        if self.share == 0 { 0 } else { (all * self.share / 100).min(left).max(1) }
    }

    /// The words of its command, where it gets so many minutes.
    pub fn words(&self, minutes: u64) -> Vec<String> {
        let own = minutes.to_string();
        self.command.split(' ').map(|word| if word == "MINUTES" { own.clone() } else { word.to_owned() }).collect()
    }

    /// Whether this is its command with some number of minutes.
    pub fn is_command(&self, command: &str) -> bool {
        let (given, wanted): (Vec<&str>, Vec<&str>) = (command.split(' ').collect(), self.command.split(' ').collect());
        let same =
            |(given, wanted): (&&str, &&str)| given == wanted || *wanted == "MINUTES" && given.parse::<u64>().is_ok();
        given.len() == wanted.len() && given.iter().zip(&wanted).all(same)
    }
}
