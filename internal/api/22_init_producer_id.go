package api

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/quorum"
)

// InitProducerId (22).
//
// v1: throttling. v2: flexible. v3: resumes an id and epoch (KIP-360). v4: PRODUCER_FENCED. v5: KIP-890.

func (a *API) initProducerID(c *call, request *kmsg.InitProducerIDRequest) kmsg.Response {
	response := answerTo[*kmsg.InitProducerIDResponse](request)
	response.ProducerID, response.ProducerEpoch = -1, -1
	if request.TransactionalID != nil {
		refused := kerr.CoordinatorNotAvailable
		if *request.TransactionalID == "" {
			refused = kerr.InvalidRequest
		}
		response.ErrorCode = a.failed(c, refused)
		return response
	}
	id, err := a.ids.next(c.ctx, a.brokerEpoch())
	if err != nil {
		response.ErrorCode = a.failed(c, err)
		return response
	}
	response.ProducerID, response.ProducerEpoch = id, 0
	return response
}

// brokerEpoch is the epoch of this broker's registration; -1 before it is registered.
func (a *API) brokerEpoch() int64 {
	if b := a.Metadata.Image().Broker(a.NodeID); b != nil {
		return b.Epoch
	}
	return -1
}

// producerIDs gives out producer ids from blocks that the controller reserves.
type producerIDs struct {
	metadata Metadata
	nodeID   int32

	mu   sync.Mutex
	id   int64 // the next
	left int32 // how many of the block are left
}

func (p *producerIDs) next(ctx context.Context, brokerEpoch int64) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		block, err := quorum.Ask[controller.ProducerIDBlock](ctx, p.metadata,
			controller.AllocateProducerIDs{BrokerID: p.nodeID, BrokerEpoch: brokerEpoch}, auth.Principal{})
		if err != nil {
			return 0, err
		}
		p.id, p.left = block.First, block.Len
	}
	id := p.id
	p.id++
	p.left--
	return id, nil
}
