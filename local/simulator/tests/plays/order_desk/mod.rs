//! The order desk on the real SDK and engine: its fourteen access patterns held against a naive reading of all items, and its
//! orders over crashes, repetitions and races.

mod crash;
mod life;
mod patterns;
mod racing;
mod world;
