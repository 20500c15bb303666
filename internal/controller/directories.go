package controller

import (
	"slices"

	"tidemark/internal/metadata"
)

// DirectoryAssignment says in which log directory a broker has a replica.
type DirectoryAssignment struct {
	Directory metadata.UUID
	TopicID   metadata.UUID
	Partition int32
}

// AssignReplicasToDirs writes down in which directories a broker put its
// replicas. Its result is an [AssignReplicasToDirsResult].
type AssignReplicasToDirs struct {
	BrokerID    int32
	BrokerEpoch int64
	Assignments []DirectoryAssignment
}

// AssignReplicasToDirsResult has one refusal, or nil, for each assignment.
type AssignReplicasToDirsResult struct {
	Errs []*Error
}

func (c AssignReplicasToDirs) decide(d *decider) (any, error) {
	d.atomic = false
	if !metadata.SupportsDirectories(d.level) {
		return nil, refuse(ErrUnsupportedVersion, "Directory assignment is not supported yet.")
	}
	b, err := d.checkEpoch(c.BrokerID, c.BrokerEpoch)
	if err != nil {
		return nil, err
	}
	var res AssignReplicasToDirsResult
	offline := map[*metadata.Partition]bool{}
	for _, a := range c.Assignments {
		p, err := d.assignDirectory(b, a)
		if err == nil && !b.HasLogDir(a.Directory) {
			offline[p] = true
		}
		res.Errs = append(res.Errs, asError(err, ErrUnknownServerError))
	}
	if len(offline) > 0 {
		d.reassess(b.ID, metadata.NoLeader, metadata.NoLeader, func(p *metadata.Partition) bool { return offline[p] })
	}
	return res, nil
}

func (d *decider) assignDirectory(b *metadata.Broker, a DirectoryAssignment) (*metadata.Partition, error) {
	t := d.Image.TopicByID(a.TopicID)
	if t == nil {
		return nil, &Error{Reason: ErrUnknownTopicID}
	}
	p := t.Partition(a.Partition)
	if p == nil {
		return nil, &Error{Reason: ErrUnknownTopic}
	}
	at := slices.Index(p.Replicas, b.ID)
	if at < 0 {
		return nil, &Error{Reason: ErrNotLeaderOrFollower}
	}
	dirs := slices.Clone(p.Directories)
	dirs[at] = a.Directory
	d.change(partitionChange{
		topic: t, id: a.Partition, partition: p, acceptable: d.isActive, isr: p.ISR, directories: dirs,
	})
	return p, nil
}
