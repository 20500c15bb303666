package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
	"tidemark/internal/metadata"
)

// OffsetFetch (9).
//
// v0: kept in ZooKeeper once; here as all others. v2: all topics by null, an error of the whole. v3: throttle time.
// v5: leader epochs. v6: flexible. v7: only offsets that no open transaction can change (KIP-447). v8: several groups
// (KIP-709). v9: consumer groups (KIP-848). v10: topic ids.

const (
	groupErrorInFetch = 2 // the version from which on a group has an error of its own
	groupsInFetch     = 8
)

func (a *API) offsetFetch(c *call, request *kmsg.OffsetFetchRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.OffsetFetchResponse](request)
	if request.Version < groupsInFetch {
		a.fetchGroup(c, oneGroup(request), request.RequireStable, func(g kmsg.OffsetFetchResponseGroup) {
			fillOneGroup(response, g)
			done(response)
		})
		return
	}
	put := gather(len(request.Groups), func(all []kmsg.OffsetFetchResponseGroup) {
		response.Groups = all
		done(response)
	})
	for i, asked := range request.Groups {
		a.fetchGroup(c, asked, request.RequireStable, func(g kmsg.OffsetFetchResponseGroup) { put(i, g) })
	}
}

// oneGroup is the request in the form of v8, whatever its version.
func oneGroup(request *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = request.Group
	if request.Topics != nil {
		asked.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range request.Topics {
		one := kmsg.NewOffsetFetchRequestGroupTopic()
		one.Topic, one.Partitions = t.Topic, t.Partitions
		asked.Topics = append(asked.Topics, one)
	}
	return asked
}

// fillOneGroup writes the answer for a group in the form of the versions before v8.
func fillOneGroup(response *kmsg.OffsetFetchResponse, g kmsg.OffsetFetchResponseGroup) {
	if response.Version >= groupErrorInFetch {
		response.ErrorCode = g.ErrorCode
	}
	for _, t := range g.Topics {
		out := kmsg.NewOffsetFetchResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetFetchResponseTopicPartition()
			one.Partition, one.Offset, one.LeaderEpoch = p.Partition, p.Offset, p.LeaderEpoch
			one.Metadata, one.ErrorCode = p.Metadata, p.ErrorCode
			out.Partitions = append(out.Partitions, one)
		}
		response.Topics = append(response.Topics, out)
	}
}

func (a *API) fetchGroup(c *call, asked kmsg.OffsetFetchRequestGroup, stable bool,
	done func(kmsg.OffsetFetchResponseGroup)) {
	if !a.allowed(c, auth.Describe, auth.Group(asked.Group)) {
		done(a.fetchRefused(c, asked, kerr.GroupAuthorizationFailed))
		return
	}
	var topics []group.TopicPartitions
	var refused []kmsg.OffsetFetchResponseGroupTopic
	if asked.Topics != nil {
		topics, refused = a.fetchable(c, asked.Topics)
	}
	r := &group.FetchRequest{Group: asked.Group, MemberID: asked.MemberID, MemberEpoch: asked.MemberEpoch,
		Topics: topics, All: asked.Topics == nil, Stable: stable}
	a.Groups.Fetch(r, func(fetched []group.FetchedTopic, err error) {
		if err != nil {
			done(a.fetchRefused(c, asked, err))
			return
		}
		out := kmsg.NewOffsetFetchResponseGroup()
		out.Group = asked.Group
		for _, t := range fetched {
			if asked.Topics != nil || a.tellable(c, &t) {
				out.Topics = append(out.Topics, a.fetchedTopic(c, t))
			}
		}
		out.Topics = append(out.Topics, refused...)
		done(out)
	})
}

// fetchable divides topics into those that can be asked for and the answers for the others.
func (a *API) fetchable(c *call, asked []kmsg.OffsetFetchRequestGroupTopic) (topics []group.TopicPartitions,
	refused []kmsg.OffsetFetchResponseGroupTopic) {
	topics = []group.TopicPartitions{}
	for _, t := range asked {
		known := true
		if c.version() >= idsInOffsets {
			var topic *metadata.Topic
			if topic = a.Metadata.Image().TopicByID(t.TopicID); topic != nil {
				t.Topic = topic.Name
			}
			known = topic != nil
		}
		switch {
		case !known:
			refused = append(refused, a.refusedFetch(c, t, kerr.UnknownTopicID))
		case !a.allowed(c, auth.Describe, auth.Topic(t.Topic)):
			refused = append(refused, a.refusedFetch(c, t, kerr.TopicAuthorizationFailed))
		default:
			topics = append(topics, group.TopicPartitions{Topic: t.Topic, TopicID: t.TopicID, Partitions: t.Partitions})
		}
	}
	return topics, refused
}

// tellable tells whether a topic that was not asked for by name may be in the answer, and finds its id.
func (a *API) tellable(c *call, t *group.FetchedTopic) bool {
	if !a.allowed(c, auth.Describe, auth.Topic(t.Topic)) {
		return false
	}
	if c.version() < idsInOffsets {
		return true
	}
	topic := a.Metadata.Image().Topic(t.Topic)
	if topic != nil {
		t.TopicID = topic.ID
	}
	return topic != nil
}

func (a *API) fetchedTopic(c *call, t group.FetchedTopic) kmsg.OffsetFetchResponseGroupTopic {
	out := kmsg.NewOffsetFetchResponseGroupTopic()
	out.Topic, out.TopicID = t.Topic, t.TopicID
	for _, p := range t.Partitions {
		one := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		one.Partition, one.Offset, one.LeaderEpoch = p.Partition, p.Offset, p.LeaderEpoch
		one.Metadata, one.ErrorCode = &p.Metadata, a.failed(c, p.Err)
		out.Partitions = append(out.Partitions, one)
	}
	return out
}

// refusedFetch gives all partitions of a topic one error.
func (a *API) refusedFetch(c *call, t kmsg.OffsetFetchRequestGroupTopic, err error,
) kmsg.OffsetFetchResponseGroupTopic {
	refused := group.FetchedTopic{Topic: t.Topic, TopicID: t.TopicID}
	for _, p := range t.Partitions {
		refused.Partitions = append(refused.Partitions, group.FetchedPartition{Partition: p, Offset: -1,
			LeaderEpoch: -1, Err: err})
	}
	return a.fetchedTopic(c, refused)
}

// fetchRefused gives a group an error; before v2 that can only be told of its partitions.
func (a *API) fetchRefused(c *call, asked kmsg.OffsetFetchRequestGroup, err error) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = asked.Group
	if c.version() >= groupErrorInFetch {
		out.ErrorCode = a.failed(c, err)
		return out
	}
	for _, t := range asked.Topics {
		out.Topics = append(out.Topics, a.refusedFetch(c, t, err))
	}
	return out
}
