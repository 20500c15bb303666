package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Java names of the exceptions that Kafka's tools show most.
const (
	classIllegalArgument = "java.lang.IllegalArgumentException"
	classErrors          = "org.apache.kafka.common.errors."
	classTimeout         = classErrors + "TimeoutException"
	classConfig          = "org.apache.kafka.common.config.ConfigException"
	classKafka           = "org.apache.kafka.common.KafkaException"
)

type apiError struct {
	class     string // with its package only when that is not the usual one
	text      string
	retriable bool
}

// Failure is an error as Kafka's tools report it: a text, and the Java exception
// name that stands beside it in their error output. Code is the wire error code when
// a broker sent it, else 0.
type Failure struct {
	Class   string
	Message string
	Code    int16
	Bare    bool // Message is Java's null, not an empty text
	Cause   *Failure
	// Suppressed are failures that Java prints below the trace of this one.
	Suppressed []*Failure
}

func (f *Failure) Error() string { return f.Message }

// String is the failure in the form "class: message", the class alone when it is bare.
func (f *Failure) String() string {
	if f.Bare {
		return f.Class
	}
	return f.Class + ": " + f.Message
}

// Trace is what Java prints as the stack trace of the failure, without the frames.
func (f *Failure) Trace() string {
	var text strings.Builder
	for prefix := ""; f != nil; f, prefix = f.Cause, "Caused by: " {
		text.WriteString(prefix + f.String() + "\n")
		for _, s := range f.Suppressed {
			text.WriteString("\tSuppressed: " + s.String() + "\n")
		}
	}
	return text.String()
}

// Execution wraps a failure as Java does when the answer to a request is waited for.
func Execution(err error) error {
	cause := AsFailure(err)
	if cause == nil {
		return nil
	}
	return &Failure{Class: "java.util.concurrent.ExecutionException", Message: cause.String(), Cause: cause}
}

// Fail makes a Failure of the given class.
func Fail(class, format string, args ...any) *Failure {
	return &Failure{Class: class, Message: fmt.Sprintf(format, args...)}
}

// BadArgument is a Failure for an argument that makes no sense.
func BadArgument(format string, args ...any) *Failure {
	return Fail(classIllegalArgument, format, args...)
}

// APIFailure turns an error code of the wire into a Failure; message replaces the
// default text when a broker sent one. It returns nil for code 0.
func APIFailure(code int16, message *string) *Failure {
	if code == 0 {
		return nil
	}
	known, ok := apiErrors[code]
	if !ok {
		known = apiErrors[-1]
	}
	f := &Failure{Class: known.class, Message: known.text, Code: code}
	if !strings.Contains(known.class, ".") {
		f.Class = classErrors + known.class
	}
	if message != nil {
		f.Message = *message
	}
	return f
}

// CodeName is the name of an error code in the protocol, "UNKNOWN_TOPIC_OR_PARTITION".
func CodeName(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return "NONE"
}

// Retriable reports whether Kafka's clients try again after this error code.
func Retriable(code int16) bool { return apiErrors[code].retriable }

// AsFailure finds the Failure in err, or makes one.
func AsFailure(err error) *Failure {
	var failure *Failure
	var option *OptionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return failure
	case errors.As(err, &option):
		return &Failure{Class: option.Class, Message: option.Message, Cause: option.Cause}
	}
	return &Failure{Class: classKafka, Message: err.Error()}
}

// UsageError asks for Message and the usage text on the error output, and exit status 1.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, args...)}
}

// Log writes a line in the form of the log file settings that Kafka's tools come with:
// time, level, text, source.
func Log(w io.Writer, now time.Time, level, source, text string) {
	fmt.Fprintf(w, "[%s] %s %s (%s)\n", now.Format("2006-01-02 15:04:05,000"), level, text, source)
}
