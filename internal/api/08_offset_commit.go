package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
	"tidemark/internal/metadata"
)

// OffsetCommit (8).
//
// v0: kept in ZooKeeper once; here as all others. v1: members, a time of the commit. v2: retention of the offsets.
// v3: throttle time. v5: no retention. v6: leader epochs. v7: static members (KIP-345). v8: flexible. v9: consumer
// groups (KIP-848). v10: topic ids.

// idsInOffsets is the version of OffsetCommit and OffsetFetch from which on topics are named by their ids.
const idsInOffsets = 10

func (a *API) offsetCommit(c *call, request *kmsg.OffsetCommitRequest, done func(kmsg.Response)) {
	answer := commitAnswer{response: answerTo[*kmsg.OffsetCommitResponse](request)}
	if !a.allowed(c, auth.Read, auth.Group(request.Group)) {
		for _, t := range request.Topics {
			answer.refuse(t, a.failed(c, kerr.GroupAuthorizationFailed))
		}
		done(answer.response)
		return
	}
	commit := &group.CommitRequest{Group: request.Group, MemberID: request.MemberID, InstanceID: request.InstanceID,
		Generation: request.Generation, Version: request.Version, RetentionMs: request.RetentionTimeMillis}
	for _, t := range request.Topics {
		if valid, ok := a.committable(c, t, &answer); ok {
			commit.Topics = append(commit.Topics, valid)
		}
	}
	if len(commit.Topics) == 0 {
		done(answer.response)
		return
	}
	a.Groups.Commit(commit, func(each []error, err error) {
		i := 0
		for _, t := range commit.Topics {
			for _, p := range t.Partitions {
				code := a.failed(c, err)
				if err == nil {
					code = a.failed(c, each[i])
				}
				answer.set(t.Topic, t.TopicID, p.Partition, code)
				i++
			}
		}
		done(answer.response)
	})
}

// committable is the part of a topic that can be committed: existing partitions of a topic that the caller may read.
func (a *API) committable(c *call, t kmsg.OffsetCommitRequestTopic, answer *commitAnswer) (group.CommitTopic, bool) {
	image := a.Metadata.Image()
	byID := c.version() >= idsInOffsets
	var topic *metadata.Topic
	if byID {
		if topic = image.TopicByID(t.TopicID); topic != nil {
			t.Topic = topic.Name
		}
	} else {
		topic = image.Topic(t.Topic)
	}
	switch {
	case byID && topic == nil:
		answer.refuse(t, a.failed(c, kerr.UnknownTopicID))
	case !a.allowed(c, auth.Read, auth.Topic(t.Topic)):
		answer.refuse(t, a.failed(c, kerr.TopicAuthorizationFailed))
	case topic == nil:
		answer.refuse(t, a.failed(c, kerr.UnknownTopicOrPartition))
	default:
		return a.existing(c, t, topic, answer)
	}
	return group.CommitTopic{}, false
}

func (a *API) existing(c *call, t kmsg.OffsetCommitRequestTopic, topic *metadata.Topic, answer *commitAnswer,
) (group.CommitTopic, bool) {
	valid := group.CommitTopic{Topic: topic.Name, TopicID: topic.ID}
	for _, p := range t.Partitions {
		if topic.Partition(p.Partition) == nil {
			answer.set(topic.Name, topic.ID, p.Partition, a.failed(c, kerr.UnknownTopicOrPartition))
			continue
		}
		valid.Partitions = append(valid.Partitions, group.CommitPartition{Partition: p.Partition, Offset: p.Offset,
			LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, CommitMs: p.Timestamp})
	}
	return valid, len(valid.Partitions) > 0
}

// commitAnswer gathers the outcome of partitions by topic: those that were refused come first.
type commitAnswer struct {
	response *kmsg.OffsetCommitResponse
}

func (r *commitAnswer) set(topic string, id [16]byte, partition int32, code int16) {
	i := slices.IndexFunc(r.response.Topics, func(t kmsg.OffsetCommitResponseTopic) bool {
		return t.Topic == topic && (t.TopicID == id || r.response.Version < idsInOffsets)
	})
	if i < 0 {
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Topic, t.TopicID = topic, id
		r.response.Topics = append(r.response.Topics, t)
		i = len(r.response.Topics) - 1
	}
	p := kmsg.NewOffsetCommitResponseTopicPartition()
	p.Partition, p.ErrorCode = partition, code
	r.response.Topics[i].Partitions = append(r.response.Topics[i].Partitions, p)
}

// refuse gives all partitions of a topic one error.
func (r *commitAnswer) refuse(t kmsg.OffsetCommitRequestTopic, code int16) {
	for _, p := range t.Partitions {
		r.set(t.Topic, t.TopicID, p.Partition, code)
	}
}
