package api

import (
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/group"
)

// errorText is what Kafka says of an error in a response that has room for a message; nil: nothing. An error that
// is only a code gets the code's usual text, one of ours gets none.
func errorText(err error) *string {
	if own := ownText(err); own != nil {
		return own
	}
	var refused *controller.Error
	if errors.As(err, &refused) {
		if refused.Message == "" {
			return nil
		}
		return &refused.Message
	}
	var misconfigured *config.Error
	if errors.As(err, &misconfigured) {
		return &misconfigured.Message
	}
	return usualText(code(err))
}

// ownText is the text that an error brings with it; nil: none.
func ownText(err error) *string {
	var texted *codedError
	if errors.As(err, &texted) {
		return &texted.text
	}
	var refusal *group.Refusal
	if errors.As(err, &refusal) {
		return &refusal.Message
	}
	return nil
}

// usualText is Kafka's text for an error code; nil for UNKNOWN_SERVER_ERROR, of which clients are told nothing.
func usualText(n int16) *string {
	known := kerr.TypedErrorForCode(n)
	if known == nil || n == kerr.UnknownServerError.Code {
		return nil
	}
	text := known.Description
	if own, ok := kafkaTexts[n]; ok {
		text = own
	}
	return &text
}

// kafkaTexts are the texts of Kafka 4.3.1 (class Errors) where kerr's differ.
var kafkaTexts = map[int16]string{
	kerr.NotLeaderForPartition.Code: "For requests intended only for the leader, this error indicates that the broker " +
		"is not the current leader. For requests intended for any replica, this error indicates that the broker is " +
		"not a replica of the topic partition.",
	kerr.MessageTooLarge.Code: "The request included a message larger than the max message size the server will " +
		"accept.",
	kerr.InvalidGroupID.Code:                     "The group id is invalid.",
	kerr.TopicAuthorizationFailed.Code:           "Topic authorization failed.",
	kerr.GroupAuthorizationFailed.Code:           "Group authorization failed.",
	kerr.InvalidProducerEpoch.Code:               "Producer attempted to produce with an old epoch.",
	kerr.TransactionalIDAuthorizationFailed.Code: "Transactional Id authorization failed.",
	kerr.FencedLeaderEpoch.Code:                  "The leader epoch in the request is older than the epoch on the broker.",
	kerr.UnknownLeaderEpoch.Code:                 "The leader epoch in the request is newer than the epoch on the broker.",
	kerr.StaleBrokerEpoch.Code:                   "Broker epoch has changed.",
	kerr.OffsetNotAvailable.Code: "The leader high watermark has not caught up from a recent leader election so the " +
		"offsets cannot be guaranteed to be monotonically increasing.",
	kerr.MemberIDRequired.Code: "The group member needs to have a valid member id before actually entering a " +
		"consumer group.",
	kerr.PreferredLeaderNotAvailable.Code: "The preferred leader was not available.",
	kerr.GroupMaxSizeReached.Code:         "The group has reached its maximum size.",
	kerr.EligibleLeadersNotAvailable.Code: "Eligible topic partition leaders are not available.",
	kerr.ElectionNotNeeded.Code:           "Leader election not needed for topic partition.",
	kerr.InvalidRecord.Code:               "This record has failed the validation on broker and hence will be rejected.",
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// codedError is an error code with a text of its own.
type codedError struct {
	code *kerr.Error
	text string
}

func wireError(code *kerr.Error, text string) error { return &codedError{code, text} }

func (e *codedError) Error() string { return e.text }

// Unwrap is the code.
func (e *codedError) Unwrap() error { return e.code }
