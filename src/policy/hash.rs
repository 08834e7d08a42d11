//! A quick hash for tables whose keys come from the policy's own files, never from callers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table with trusted keys.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Multiplies and rotates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes the upper bits for tags and the lower ones for places: both must depend on every bit.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_words_are_spread() {
        let mut map: Map<String, usize> = Map::default();
        for n in 0..10_000 {
            map.insert(format!("v{n}"), n);
        }
        assert_eq!(map.len(), 10_000);
        assert_eq!(map.get("v4711"), Some(&4711));
        let low = |text: &str| {
            let mut hasher = Quick::default();
            hasher.write(text.as_bytes());
            hasher.finish() & 0xfff
        };
        let distinct: std::collections::HashSet<u64> = (0..4096).map(|n| low(&format!("eth{n}"))).collect();
        assert!(distinct.len() > 2000, "{}", distinct.len());
    }
}
