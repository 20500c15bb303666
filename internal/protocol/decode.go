package protocol

// decodeSlack is what decoding may allocate however small the body is.
const decodeSlack = 8 << 20

// DecodeBound is the most memory, in bytes, that the decoded form of a body of
// n bytes may take.
func DecodeBound(n int) int64 { return 2*int64(n) + decodeSlack }
