package protocol

import "github.com/twmb/franz-go/pkg/kmsg"

// decodeSlack is what decoding may allocate however small the body is.
const decodeSlack = 8 << 20

// DecodeBound is the most memory, in bytes, that the decoded form of a body of
// n bytes may take.
func DecodeBound(n int) int64 { return 2*int64(n) + decodeSlack }

// DecodeRequest decodes the body of a request that is neither Produce nor
// Fetch. Strings are copies, byte fields alias the body. What it allocates is at
// most [DecodeBound] of the body. Errors: *MalformedError.
func DecodeRequest(h RequestHeader, body []byte) (kmsg.Request, error) {
	req := kmsg.RequestForKey(h.Key)
	if req == nil {
		return nil, &MalformedError{Key: h.Key, Version: h.Version, Err: errUnknownKey}
	}
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, &MalformedError{Key: h.Key, Version: h.Version, Err: err}
	}
	return req, nil
}
