package config

import (
	"errors"
	"fmt"
)

// The kinds of a refused configuration; [Error] wraps one of them.
var (
	// ErrInvalidConfig: a key or a value is refused (wire code 40).
	ErrInvalidConfig = errors.New("invalid configuration")
	// ErrInvalidRequest: the request makes no sense, or a broker refuses a dynamic change of its own (wire code 42).
	ErrInvalidRequest = errors.New("invalid request")
	// ErrInvalidTopic: the name of a topic is illegal (wire code 17).
	ErrInvalidTopic = errors.New("invalid topic name")
)

// Error is a refusal. Its message is the text that Kafka sends in the same case.
type Error struct {
	Kind    error // ErrInvalidConfig, ErrInvalidRequest or ErrInvalidTopic
	Message string
}

// Error returns the message alone.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func invalidConfig(format string, args ...any) *Error {
	return &Error{ErrInvalidConfig, fmt.Sprintf(format, args...)}
}

func invalidRequest(format string, args ...any) *Error {
	return &Error{ErrInvalidRequest, fmt.Sprintf(format, args...)}
}

// badValue is the text of a value that is refused for a reason; value is as Java prints it.
func badValue(name, value, reason string) *Error {
	return invalidConfig("Invalid value %s for configuration %s: %s", value, name, reason)
}
