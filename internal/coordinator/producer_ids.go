package coordinator

import (
	"context"
	"sync"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// ProducerIDs gives out producer ids from blocks that the controller reserves. It is safe for concurrent use.
type ProducerIDs struct {
	Door   quorum.Door
	Image  func() *metadata.Image
	NodeID int32

	mu   sync.Mutex
	next int64
	left int32 // of the block
}

// New gives an id that nobody has had. It blocks while a block is being reserved, once in a thousand ids.
func (p *ProducerIDs) New() (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		block, err := quorum.Ask[controller.ProducerIDBlock](context.Background(), p.Door,
			controller.AllocateProducerIDs{BrokerID: p.NodeID, BrokerEpoch: p.brokerEpoch()}, auth.Principal{})
		if err != nil {
			return 0, err
		}
		p.next, p.left = block.First, block.Len
	}
	id := p.next
	p.next++
	p.left--
	return id, nil
}

// brokerEpoch is the epoch of this broker's registration; -1 before it is registered.
func (p *ProducerIDs) brokerEpoch() int64 {
	if b := p.Image().Broker(p.NodeID); b != nil {
		return b.Epoch
	}
	return -1
}
