//! Framing and parsing against anything: any chunking gives the same messages, and random bytes never panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use proptest::prelude::*;
use rootwrap::protocol::fields::{Fields, put_byte_strings};
use rootwrap::protocol::run::{Run, Wanted};
use rootwrap::protocol::{Call, Decoder, Method, Reply};

/// Cuts `bytes` at the given places.
fn chunks<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

proptest! {
    #[test]
    fn given_any_chunking_then_the_same_messages(
        texts in prop::collection::vec(prop::collection::vec(1..=255_u8, 0..40), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let stream: Vec<u8> = texts.iter().flat_map(|text| text.iter().copied().chain([0])).collect();
        let mut decoder = Decoder::new(64);
        for chunk in chunks(&stream, &cuts) {
            decoder.feed(chunk, vec![], false).unwrap();
        }
        let got: Vec<Vec<u8>> = std::iter::from_fn(|| decoder.take()).map(|message| message.bytes).collect();
        prop_assert_eq!(got, texts);
        prop_assert!(decoder.is_idle());
    }

    #[test]
    fn given_random_bytes_then_no_panic_and_bounded_memory(stream in prop::collection::vec(any::<u8>(), 0..400), limit in 0..64_usize) {
        let mut decoder = Decoder::new(limit);
        for chunk in stream.chunks(7) {
            if decoder.feed(chunk, vec![], false).is_err() {
                break;
            }
        }
        while let Some(message) = decoder.take() {
            prop_assert!(message.bytes.len() <= limit);
            let _ = Call::parse(&message.bytes).map(Method::parse);
            let _ = Reply::parse(&message.bytes);
        }
    }

    #[test]
    fn given_almost_json_then_no_panic(text in r#"[\[\]{}",:0-9a-z\\u. -]{0,80}"#) {
        let _ = Call::parse(text.as_bytes()).map(Method::parse);
        let _ = Call::parse(format!("{{\"method\":\"io.rootwrap.Run\",\"parameters\":{text}}}").as_bytes()).map(Method::parse);
    }

    #[test]
    fn given_any_arguments_then_they_arrive_byte_for_byte(argv in prop::collection::vec(prop::collection::vec(1..=255_u8, 0..30), 1..8)) {
        let run = Run { wanted: Wanted { argv: argv.clone(), ..Wanted::default() }, ..Run::default() };
        let bytes = Call::new("io.rootwrap.Run", run.parameters()).encode().unwrap();
        prop_assert!(!bytes.contains(&0));
        match Method::parse(Call::parse(&bytes).unwrap()).unwrap() {
            Method::Run(read) => prop_assert_eq!(read.wanted.argv, argv),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

#[test]
fn given_as_many_arguments_as_allowed_then_all_arrive() {
    let argv: Vec<Vec<u8>> = (0..4096).map(|n| format!("argument {n}").into_bytes()).collect();
    let mut parameters = serde_json::Map::new();
    put_byte_strings(&mut parameters, "argv", &argv);
    assert_eq!(Fields::new(parameters).byte_strings("argv").unwrap(), Some(argv));
}
