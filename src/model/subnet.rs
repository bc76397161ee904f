//! Subnets of networks.

use std::net::IpAddr;

/// Whether two subnets have an address in common. `false` if one cannot be parsed.
pub fn overlap(one: &str, other: &str) -> bool {
    let parse = |subnet: &str| {
        let (address, length) = subnet.split_once('/')?;
        let (bits, width) = match address.parse().ok()? {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let length: u32 = length.parse().ok().filter(|length| *length <= width)?;
        Some((bits, width, length))
    };
    let (Some(one), Some(other)) = (parse(one), parse(other)) else {
        return false;
    };
    let ignored = one.1 - one.2.min(other.2);
    one.1 == other.1 && one.0.checked_shr(ignored) == other.0.checked_shr(ignored)
}

/// Whether an address is in a subnet.
pub fn has_address(subnet: &str, address: &str) -> bool {
    let length = if address.contains(':') { 128 } else { 32 };
    overlap(subnet, &format!("{address}/{length}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_overlap_if_one_contains_the_other() {
        for (one, other, expected) in [
            ("172.18.0.0/16", "172.18.9.0/24", true),
            ("172.18.9.0/24", "172.18.0.0/16", true),
            ("172.18.0.0/16", "172.19.0.0/16", false),
            ("0.0.0.0/0", "10.0.0.0/8", true),
            ("::/0", "fd00::/8", true),
            ("::/0", "10.0.0.0/8", false),
            ("fd00:1::/64", "fd00:2::/64", false),
            ("", "10.0.0.0/8", false),
            ("10.0.0.0/99", "10.0.0.0/8", false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
        }
    }
}
