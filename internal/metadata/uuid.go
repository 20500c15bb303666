package metadata

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// UUID is Kafka's 16-byte identifier of topics, incarnations and directories.
type UUID [16]byte

// Directory ids that do not name a directory (KIP-858).
var (
	// ZeroUUID stands for "none"; as a directory id it means migrating.
	ZeroUUID = UUID{}
	// DirUnassigned means that the broker has yet to choose a directory.
	DirUnassigned = UUID{15: 1}
	// DirLost means that the replica is in a directory that was lost.
	DirLost = UUID{15: 2}
)

// String is the URL-safe base64 form without padding, 22 characters.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// IsZero reports whether u stands for "none".
func (u UUID) IsZero() bool { return u == ZeroUUID }

// Compare orders ids by their bytes.
func (u UUID) Compare(v UUID) int { return bytes.Compare(u[:], v[:]) }

// Reserved reports whether u is one of the ids 0 to 100, which Kafka keeps for
// itself and never draws as a random id.
func (u UUID) Reserved() bool {
	for _, b := range u[:15] {
		if b != 0 {
			return false
		}
	}
	return u[15] <= 100
}

// ParseUUID reads the form that [UUID.String] writes.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) != 22 {
		return u, fmt.Errorf("parse uuid %q: %d characters instead of 22", s, len(s))
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return u, fmt.Errorf("parse uuid %q: %w", s, err)
	}
	return UUID(b), nil
}
