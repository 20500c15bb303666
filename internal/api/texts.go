package api

import (
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/config"
	"tidemark/internal/controller"
)

// errorText is what Kafka says of an error in a response that has room for a message; nil: nothing. An error that
// is only a code gets the code's usual text.
func errorText(err error) *string {
	var refused *controller.Error
	if errors.As(err, &refused) {
		if refused.Message == "" {
			return nil
		}
		return &refused.Message
	}
	var texted *codedError
	if errors.As(err, &texted) {
		return &texted.text
	}
	var misconfigured *config.Error
	if errors.As(err, &misconfigured) {
		return &misconfigured.Message
	}
	var coded *kerr.Error
	if errors.As(err, &coded) {
		return &coded.Description
	}
	text := err.Error()
	return &text
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
