package group

import "tidemark/internal/wire"

// noteSubscriptions reads the topics of consumers out of their metadata; see [classic.subscribes].
//
// Kafka: ClassicGroup.computeSubscribedTopics.
func (c *classic) noteSubscriptions() {
	c.subscribed, c.subscribedKnown = nil, false
	if c.protocolType != ConsumerProtocolType {
		return
	}
	if len(c.members) > 0 && c.protocol == nil {
		return
	}
	topics := map[string]bool{}
	for _, one := range c.members {
		if !readSubscription(one.metadata(c.protocol), topics) {
			c.m.log.Warn("subscription of a member cannot be read", "group", c.id, "member", one.id)
			return
		}
	}
	c.subscribed, c.subscribedKnown = topics, true
}

// smallestTopic is the size of the shortest STRING.
const smallestTopic = 2

// readSubscription adds the topics that a consumer is subscribed to:
//
//	int16 version | [] STRING topic | BYTES? user data | what later versions add
func readSubscription(b []byte, topics map[string]bool) bool {
	r := wire.NewReader(b)
	if version := r.Int16(); version < 0 {
		return false
	}
	n := r.ArrayLen(smallestTopic)
	if n < 0 {
		return false
	}
	for range n {
		topics[r.Str()] = true
	}
	r.Bytes()
	return r.Err() == nil
}

// subscribes tells whether a member may be subscribed to a topic: of consumers whose topics are not known, anyone
// may be.
func (c *classic) subscribes(topic string) bool {
	if c.subscribedKnown {
		return c.subscribed[topic]
	}
	return c.protocolType == ConsumerProtocolType
}
