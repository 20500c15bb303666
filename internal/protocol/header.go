package protocol

import (
	"tidemark/internal/wire"
)

// RequestHeader begins every request.
//
// Version 1, and version 2 of flexible requests:
//
//	bytes   0      2        4              8              10
//	       | key  | version | correlation  | client id n  | client id … | tags (v2)
//	       | i16  | i16     | i32          | i16, −1 null | n bytes     | uvarint …
type RequestHeader struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is nil for null, which Kafka treats as "".
	ClientID *string
}

// ParseRequestHeader splits a frame, without its 4 bytes of size, into header
// and body; the body aliases the frame. Errors: *MalformedError, also for a
// key that Kafka 4.3.1 does not know.
//
// Kafka: the client id is never a compact string, so that an old broker can
// read the header of a newer ApiVersions request.
func ParseRequestHeader(frame []byte) (RequestHeader, []byte, error) {
	return ParseRequestHeaderNames(frame, nil)
}

// ParseRequestHeaderNames is [ParseRequestHeader] with the client id kept in
// names, so that a connection which repeats it does not allocate.
func ParseRequestHeaderNames(frame []byte, names *Names) (RequestHeader, []byte, error) {
	h := RequestHeader{Key: -1, Version: -1}
	r := newReader(frame, false)
	key, version := r.Int16(), r.Int16()
	if r.ok() {
		h.Key, h.Version = key, version
		if !Known(key) {
			r.Fail(errUnknownKey)
		}
	}
	h.CorrelationID = r.Int32()
	id := r.nullableString()
	r.flex = IsFlexible(key, version)
	r.tags(nil)
	if err := r.malformed(h.Key, h.Version); err != nil {
		return h, nil, err
	}
	if id != nil {
		h.ClientID = names.pointer(id)
	}
	return h, frame[r.Pos():], nil
}

// AppendResponseHeader appends the header of the response to a request: the
// correlation id, and in flexible versions an empty set of tags.
//
// Kafka: ApiVersions has no tags in any version, so that a client can read the
// answer of a broker whose versions it does not know yet.
func AppendResponseHeader(dst []byte, h RequestHeader) []byte {
	dst = wire.AppendInt32(dst, h.CorrelationID)
	if h.Key != KeyApiVersions && IsFlexible(h.Key, h.Version) {
		dst = append(dst, 0)
	}
	return dst
}
