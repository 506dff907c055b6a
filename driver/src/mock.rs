//! A card made of a byte array.
