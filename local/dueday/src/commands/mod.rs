//! One file a command.

pub mod charging;
pub mod demo;
pub mod due;
pub mod export;
pub mod gateway;
pub mod import;
pub mod import_file;
pub mod look_up;
pub mod resolve;
pub mod run;
pub mod runs;
pub mod serve;
pub mod simulate;
pub mod subscription;
pub mod why;
