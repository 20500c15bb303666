package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/coordinator"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// FindCoordinator (10).
//
// v1: transactional ids, error message, throttle time. v3: flexible. v4: several keys at once (KIP-699).
// v5: TRANSACTION_ABORTABLE. v6: share groups (KIP-932).

// The kinds of coordinator.
const (
	groupCoordinator       = 0
	transactionCoordinator = 1
	shareCoordinator       = 2
)

// found is where a coordinator is, or why that cannot be told.
type found struct {
	node int32
	host string
	port int32
	err  error
}

func (a *API) findCoordinator(c *call, request *kmsg.FindCoordinatorRequest) kmsg.Response {
	response := answerTo[*kmsg.FindCoordinatorResponse](request)
	if request.Version < 4 {
		f := a.coordinatorOf(c, request.CoordinatorType, request.CoordinatorKey)
		response.NodeID, response.Host, response.Port = f.node, f.host, f.port
		response.ErrorCode = a.failed(c, f.err)
		response.ErrorMessage = messageOf(f.err)
		return response
	}
	for _, key := range request.CoordinatorKeys {
		f := a.coordinatorOf(c, request.CoordinatorType, key)
		out := kmsg.NewFindCoordinatorResponseCoordinator()
		out.Key, out.NodeID, out.Host, out.Port = key, f.node, f.host, f.port
		out.ErrorCode = a.failed(c, f.err)
		if out.ErrorMessage = kmsg.StringPtr(""); errors.Is(f.err, kerr.InvalidRequest) {
			out.ErrorMessage = messageOf(f.err)
		}
		response.Coordinators = append(response.Coordinators, out)
	}
	return response
}

// messageOf is Kafka's text for an error code; that of success is "NONE".
func messageOf(err error) *string {
	if err == nil {
		return kmsg.StringPtr("NONE")
	}
	return usualText(code(err))
}

func (a *API) coordinatorOf(c *call, kind int8, key string) found {
	nowhere := func(err error) found { return found{node: -1, port: -1, err: err} }
	topic := ""
	switch {
	case kind == groupCoordinator && !a.allowed(c, auth.Describe, auth.Group(key)):
		return nowhere(kerr.GroupAuthorizationFailed)
	case kind == transactionCoordinator && !a.allowed(c, auth.Describe, auth.TransactionalID(key)):
		return nowhere(kerr.TransactionalIDAuthorizationFailed)
	case kind == groupCoordinator:
		topic = offsetsTopic
	case kind == transactionCoordinator:
		topic = txnTopic
	default:
		return nowhere(kerr.InvalidRequest)
	}
	image := a.Metadata.Image()
	t := image.Topic(topic)
	if t == nil {
		a.createInternal(topic)
		return nowhere(coordinator.ErrNotAvailable)
	}
	leader := a.leaderOf(image, t, coordinator.PartitionFor(key, int32(t.NumPartitions())))
	if leader == nil {
		return nowhere(coordinator.ErrNotAvailable)
	}
	endpoint, ok := leader.Endpoint(c.caller.Listener)
	if !ok {
		return nowhere(coordinator.ErrNotAvailable)
	}
	return found{node: leader.ID, host: endpoint.Host, port: int32(endpoint.Port)}
}

// leaderOf is the live broker that leads a partition; nil: there is none.
func (a *API) leaderOf(image *metadata.Image, t *metadata.Topic, partition int32) *metadata.Broker {
	p := t.Partition(partition)
	if p == nil {
		return nil
	}
	if b := image.Broker(p.Leader); b != nil && !b.Fenced {
		return b
	}
	return nil
}

// createInternal begins to create an internal topic in the broker's own name. The client asks again meanwhile.
func (a *API) createInternal(topic string) {
	go func() {
		create := controller.CreateTopics{Topics: []controller.NewTopic{a.automaticTopic(topic)}}
		if _, err := quorum.Ask[controller.CreateTopicsResult](context.Background(), a.Metadata, create,
			auth.Principal{}); err != nil {
			a.Logger.Warn("internal topic was not created", "topic", topic, "error", err)
		}
	}()
}
