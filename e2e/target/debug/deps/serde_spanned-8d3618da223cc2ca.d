/work/main/e2e/target/debug/deps/serde_spanned-8d3618da223cc2ca.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/spanned.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/de.rs

/work/main/e2e/target/debug/deps/libserde_spanned-8d3618da223cc2ca.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/spanned.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/de.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/spanned.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde_spanned-1.1.3/src/de.rs:
