package controller

import (
	"math"

	"tidemark/internal/metadata"
)

// ProducerIDBlockLen is the number of producer ids a broker gets at a time.
const ProducerIDBlockLen = 1000

// AllocateProducerIDs gives a broker a block of producer ids that no broker had
// before. Its result is a [ProducerIDBlock].
type AllocateProducerIDs struct {
	BrokerID    int32
	BrokerEpoch int64
}

// ProducerIDBlock is the ids First up to First+Len, exclusive.
type ProducerIDBlock struct {
	First int64
	Len   int32
}

func (c AllocateProducerIDs) decide(d *decider) (any, error) {
	d.atomic = false
	if _, err := d.checkEpoch(c.BrokerID, c.BrokerEpoch); err != nil {
		return nil, err
	}
	first := max(d.Image.NextProducerID(), 0)
	if first > math.MaxInt64-ProducerIDBlockLen {
		return nil, refuse(ErrUnknownServerError, "Exhausted all producerIds as the next block's end producerId has "+
			"exceeded the int64 type limit")
	}
	d.add(0, &metadata.ProducerIDsRecord{
		BrokerID: c.BrokerID, BrokerEpoch: c.BrokerEpoch, NextProducerID: first + ProducerIDBlockLen,
	})
	return ProducerIDBlock{First: first, Len: ProducerIDBlockLen}, nil
}
