//! Values as serde sees them: what they mean, not how they lie.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error, Serialize, Serializer};

use super::{PBool, PCode, PDuration, POption, Persistent};

impl Serialize for PBool {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        self.get().serialize(to)
    }
}

impl<'de> Deserialize<'de> for PBool {
    fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<PBool, Z::Error> {
        bool::deserialize(from).map(PBool::from)
    }
}

impl<T: Persistent + Serialize> Serialize for POption<T> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        self.get().serialize(to)
    }
}

impl<'de, T: Persistent + Deserialize<'de>> Deserialize<'de> for POption<T> {
    fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<POption<T>, Z::Error> {
        Option::deserialize(from).map(POption::from)
    }
}

impl Serialize for PDuration {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        self.get().serialize(to)
    }
}

impl<'de> Deserialize<'de> for PDuration {
    fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<PDuration, Z::Error> {
        std::time::Duration::deserialize(from).map(PDuration::from)
    }
}

impl<E: TryFrom<u64> + Serialize> Serialize for PCode<E> {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        self.get().map_err(|_| Z::Error::custom("the number of a code is that of no variant"))?.serialize(to)
    }
}

impl<'de, E: Into<u64> + Deserialize<'de>> Deserialize<'de> for PCode<E> {
    fn deserialize<Z: Deserializer<'de>>(from: Z) -> Result<PCode<E>, Z::Error> {
        E::deserialize(from).map(PCode::from)
    }
}
