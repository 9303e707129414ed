//! The orders' routes: who may do what, what is refused with which words, and what is asked again.

mod access;
mod life;
mod lists;
mod world;
