package protocol

import "github.com/twmb/franz-go/pkg/kmsg"

// decodeSlack is what decoding may allocate however small the body is.
const decodeSlack = 8 << 20

// DecodeBound is the most memory, in bytes, that the decoded form of a body of
// n bytes may take. A request that would take more is malformed; it would have
// to hold some hundred thousand elements that say next to nothing.
func DecodeBound(n int) int64 { return 2*int64(n) + decodeSlack }

// DecodeRequest decodes the body of a request that is neither Produce nor
// Fetch. Strings are copies, byte fields alias the body. What it allocates is at
// most [DecodeBound] of the body. Bytes that follow the end of the message are
// ignored, as Kafka does. Errors: *MalformedError.
func DecodeRequest(h RequestHeader, body []byte) (kmsg.Request, error) {
	req := kmsg.RequestForKey(h.Key)
	s, ok := schemas()[h.Key]
	if req == nil || !ok {
		return nil, &MalformedError{Key: h.Key, Version: h.Version, Err: errUnknownKey}
	}
	w := walker{
		reader:  newReader(body, h.Version >= s.flexible),
		version: h.Version, bound: DecodeBound(len(body)),
	}
	w.walk(s.fields)
	if err := w.malformed(h.Key, h.Version); err != nil {
		return nil, err
	}
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, &MalformedError{Key: h.Key, Version: h.Version, Err: err}
	}
	return req, nil
}
