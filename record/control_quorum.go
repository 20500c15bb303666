package record

import "tidemark/internal/wire"

// Voter is a member of the metadata quorum.
type Voter struct {
	ID          int32
	DirectoryID [16]byte // from version 1 of LeaderChange on
}

// LeaderChange is the first record of each leader epoch of the metadata log:
//
//	int16 version, int32 leader id, COMPACT_ARRAY voters, COMPACT_ARRAY granting
//	voters, tags; a voter is int32 id, from version 1 uuid directory id, tags
//
// Version 0 goes with static voters (kraft.version 0), version 1 with KIP-853.
type LeaderChange struct {
	Version                int16
	LeaderID               int32
	Voters, GrantingVoters []Voter
}

// ControlType is ControlLeaderChange.
func (LeaderChange) ControlType() ControlType { return ControlLeaderChange }

// AppendTo appends the record's value.
func (m LeaderChange) AppendTo(b []byte) []byte {
	b = wire.AppendInt32(wire.AppendInt16(b, m.Version), m.LeaderID)
	for _, list := range [][]Voter{m.Voters, m.GrantingVoters} {
		b = wire.AppendCompactArrayLen(b, len(list))
		for _, v := range list {
			b = wire.AppendInt32(b, v.ID)
			if m.Version >= 1 {
				b = wire.AppendUUID(b, v.DirectoryID)
			}
			b = wire.AppendTags(b)
		}
	}
	return wire.AppendTags(b)
}

func parseLeaderChange(r *wire.Reader) LeaderChange {
	m := LeaderChange{Version: r.Int16(), LeaderID: r.Int32()}
	for _, list := range []*[]Voter{&m.Voters, &m.GrantingVoters} {
		for n := r.CompactArrayLen(5); n > 0 && r.Err() == nil; n-- {
			v := Voter{ID: r.Int32()}
			if m.Version >= 1 {
				v.DirectoryID = r.UUID()
			}
			r.Tags(nil)
			*list = append(*list, v)
		}
	}
	r.Tags(nil)
	return m
}

// SnapshotHeader is the first record of a snapshot of the metadata log:
//
//	int16 version 0, int64 timestamp, tags
type SnapshotHeader struct {
	Version                   int16
	LastContainedLogTimestamp int64 // append time of the last record in it, ms
}

// ControlType is ControlSnapshotHeader.
func (SnapshotHeader) ControlType() ControlType { return ControlSnapshotHeader }

// AppendTo appends the record's value.
func (m SnapshotHeader) AppendTo(b []byte) []byte {
	return wire.AppendTags(wire.AppendInt64(wire.AppendInt16(b, m.Version), m.LastContainedLogTimestamp))
}

// SnapshotFooter is the last record of a snapshot, without which it is not
// complete:
//
//	int16 version 0, tags
type SnapshotFooter struct{ Version int16 }

// ControlType is ControlSnapshotFooter.
func (SnapshotFooter) ControlType() ControlType { return ControlSnapshotFooter }

// AppendTo appends the record's value.
func (m SnapshotFooter) AppendTo(b []byte) []byte {
	return wire.AppendTags(wire.AppendInt16(b, m.Version))
}

// KRaftVersion is the finalized kraft.version:
//
//	int16 version 0, int16 kraft.version, tags
type KRaftVersion struct{ Version, KRaftVersion int16 }

// ControlType is ControlKRaftVersion.
func (KRaftVersion) ControlType() ControlType { return ControlKRaftVersion }

// AppendTo appends the record's value.
func (m KRaftVersion) AppendTo(b []byte) []byte {
	return wire.AppendTags(wire.AppendInt16(wire.AppendInt16(b, m.Version), m.KRaftVersion))
}

// Voters is the dynamic set of quorum members (KIP-853):
//
//	int16 version 0, COMPACT_ARRAY voters, tags; a voter is int32 id, uuid
//	directory id, COMPACT_ARRAY endpoints (name, host, uint16 port, tags),
//	int16 least and int16 greatest kraft.version, tags, tags
type Voters struct {
	Version int16
	Voters  []VoterInfo
}

// VoterInfo is one member in [Voters].
type VoterInfo struct {
	Voter
	Endpoints                        []Endpoint
	MinKRaftVersion, MaxKRaftVersion int16
}

// Endpoint is where a voter can be reached.
type Endpoint struct {
	Name, Host string
	Port       uint16
}

// ControlType is ControlVoters.
func (Voters) ControlType() ControlType { return ControlVoters }

// AppendTo appends the record's value.
func (m Voters) AppendTo(b []byte) []byte {
	b = wire.AppendCompactArrayLen(wire.AppendInt16(b, m.Version), len(m.Voters))
	for _, v := range m.Voters {
		b = wire.AppendUUID(wire.AppendInt32(b, v.ID), v.DirectoryID)
		b = wire.AppendCompactArrayLen(b, len(v.Endpoints))
		for _, e := range v.Endpoints {
			b = wire.AppendCompactString(wire.AppendCompactString(b, e.Name), e.Host)
			b = wire.AppendTags(wire.AppendUint16(b, e.Port))
		}
		b = wire.AppendInt16(wire.AppendInt16(b, v.MinKRaftVersion), v.MaxKRaftVersion)
		b = wire.AppendTags(wire.AppendTags(b))
	}
	return wire.AppendTags(b)
}

func parseVoters(r *wire.Reader) Voters {
	m := Voters{Version: r.Int16()}
	for n := r.CompactArrayLen(27); n > 0 && r.Err() == nil; n-- {
		v := VoterInfo{Voter: Voter{ID: r.Int32(), DirectoryID: r.UUID()}}
		for k := r.CompactArrayLen(5); k > 0 && r.Err() == nil; k-- {
			e := Endpoint{Name: r.CompactString(), Host: r.CompactString(), Port: r.Uint16()}
			v.Endpoints = append(v.Endpoints, e)
			r.Tags(nil)
		}
		v.MinKRaftVersion, v.MaxKRaftVersion = r.Int16(), r.Int16()
		r.Tags(nil)
		r.Tags(nil)
		m.Voters = append(m.Voters, v)
	}
	r.Tags(nil)
	return m
}
