package crash

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/ledger"
)

// churn makes and deletes topics beside the writers, so that kills hit the metadata log as well.
type churn struct {
	next   int
	there  string // topic whose creation was acknowledged; empty: none
	asked  string // topic of a creation or deletion that was not acknowledged; empty: none
	gone   []string
	errors []error
}

// run goes on until the server dies.
func (c *churn) run(client *ledger.Client) {
	for {
		if c.there == "" {
			c.next++
			c.asked = fmt.Sprintf("churn-%d", c.next)
			if !c.create(client, c.asked) {
				return
			}
			c.there, c.asked = c.asked, ""
			continue
		}
		c.asked, c.there = c.there, ""
		if !c.remove(client, c.asked) {
			return
		}
		c.gone, c.asked = append(c.gone, c.asked), ""
	}
}

func (c *churn) create(client *ledger.Client, topic string) bool {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 2, 1
	req.Topics = append(req.Topics, rt)
	resp, err := client.Try(req)
	answer, ok := resp.(*kmsg.CreateTopicsResponse)
	if err != nil || !ok {
		return false
	}
	if code := answer.Topics[0].ErrorCode; code != 0 {
		c.errors = append(c.errors, fmt.Errorf("create %s: error %d", topic, code))
		return false
	}
	return true
}

func (c *churn) remove(client *ledger.Client, topic string) bool {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames = 30_000, []string{topic}
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	resp, err := client.Try(req)
	answer, ok := resp.(*kmsg.DeleteTopicsResponse)
	if err != nil || !ok {
		return false
	}
	if code := answer.Topics[0].ErrorCode; code != 0 {
		c.errors = append(c.errors, fmt.Errorf("delete %s: error %d", topic, code))
		return false
	}
	return true
}

// check compares the topics that there are with what was acknowledged. The topic without an acknowledgement may be
// there or not, and counts from now on as what it is.
func (c *churn) check(found map[string]kmsg.MetadataResponseTopic) []error {
	errs := c.errors
	if t, ok := found[c.there]; c.there != "" && (!ok || len(t.Partitions) != 2) {
		errs = append(errs, fmt.Errorf("%s is gone although its creation was acknowledged", c.there))
	}
	for _, topic := range c.gone {
		if _, ok := found[topic]; ok {
			errs = append(errs, fmt.Errorf("%s is back although its deletion was acknowledged", topic))
		}
	}
	if c.asked != "" {
		if _, ok := found[c.asked]; ok {
			c.there = c.asked
		} else {
			c.gone = append(c.gone, c.asked)
		}
		c.asked = ""
	}
	return errs
}
