//! Checks that deliveries are sent only to public addresses (protection against server-side request forgery). The
//! creator of a webhook endpoint chooses its URL. The URL must not make this service send requests to hosts that only
//! this service can reach, such as the metadata service of a cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses to which deliveries are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllowedAddresses {
    /// Only public addresses, and only by HTTPS.
    PublicOnly,
    /// Any address, also by HTTP: for development on a local machine.
    Any,
}

/// The IPv4 networks that are not public ("IANA IPv4 Special-Purpose Address Registry"), each with the length of its
/// prefix in bits.
const NON_PUBLIC_IPV4_NETWORKS: [(Ipv4Addr, u32); 14] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast and reserved addresses.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The networks within 2000::/3 that are not public, or whose addresses contain an IPv4 address ("IANA IPv6
/// Special-Purpose Address Registry"), each with the length of its prefix in bits.
const NON_PUBLIC_IPV6_NETWORKS: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Returns whether `address` belongs to the public internet.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            NON_PUBLIC_IPV4_NETWORKS.iter().all(|(network, bits)| !is_in_ipv4_network(address, *network, *bits))
        }
        IpAddr::V6(address) => {
            let is_global_unicast = is_in_ipv6_network(address, Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
            is_global_unicast
                && NON_PUBLIC_IPV6_NETWORKS.iter().all(|(network, bits)| !is_in_ipv6_network(address, *network, *bits))
        }
    }
}

/// Returns whether `address` is in the IPv4 network `network`, whose prefix has `bits` bits.
fn is_in_ipv4_network(address: Ipv4Addr, network: Ipv4Addr, bits: u32) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (u32::BITS - bits) == 0
}

/// Returns whether `address` is in the IPv6 network `network`, whose prefix has `bits` bits.
fn is_in_ipv6_network(address: Ipv6Addr, network: Ipv6Addr, bits: u32) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (u128::BITS - bits) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_public_is_false_exactly_within_the_special_networks() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1",
            "2001:200::1",
            "2a00::1",
        ] {
            assert!(is_public_address(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.170",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::a9fe:a9fe",
            "fe80::1",
            "fc00::1",
            "fdff::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2001::1",
            "fd00:ec2::254",
        ] {
            assert!(!is_public_address(address.parse().unwrap()), "{address}");
        }
    }
}
