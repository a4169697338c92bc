//! librdmacm: connections by IP address.
//!
//! | module | what |
//! |---|---|
//! | [`address`] | socket addresses, which of them are this host's, ports |
//! | [`channel`] | event channels: a queue behind a descriptor, and what C sees of an event |
//! | [`id`] | `rdma_cm_id`: its state, and what it does with what it hears |
//! | [`message`] | what the two sides of a connection tell each other |
//! | [`wire`] | how they tell it: one way for each provider |
//! | [`local`] | the way of `shm`: sockets between processes of one user on one host |
//! | [`roce`] | the way of `roce`: the messages of the InfiniBand communication manager |
//! | [`qp`] | queue pairs of an identifier and their way through the states |
//! | [`connect`], [`endpoint`], [`multicast`] | the exported functions |
//!
//! As in the C library, moving a queue pair to RTR and RTS is done by the program's own thread, in
//! `rdma_accept` and in `rdma_get_cm_event` when it takes the reply; identifiers without a channel
//! are synchronous, and each function waits for the event that ends it.

mod address;
mod channel;
mod connect;
mod endpoint;
mod id;
mod local;
mod message;
mod multicast;
mod qp;
mod roce;
mod wire;
