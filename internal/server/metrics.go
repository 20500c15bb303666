package server

import "time"

// Metrics receives what happens. Its methods are called from the goroutines of
// connections and must be quick. Keys are API keys.
type Metrics interface {
	ConnectionOpened(listener string)
	ConnectionClosed(listener string, why CloseReason)
	// ConnectionRefused is a connection above a limit of its address.
	ConnectionRefused(listener string)
	// ConnectionDelayed is a connection that is let in only after a while, for the rate of new connections.
	ConnectionDelayed(listener string, wait time.Duration)
	// RequestReceived counts a frame of frameBytes, its 4 bytes of size
	// included, with a key and version that are served.
	RequestReceived(key, version int16, frameBytes int)
	// ResponseSent counts a written frame; took begins when the request had
	// arrived.
	ResponseSent(key, version int16, frameBytes int64, took time.Duration)
	HandlerPanic(key int16)
}

type noMetrics struct{}

func (noMetrics) ConnectionOpened(string)                         {}
func (noMetrics) ConnectionClosed(string, CloseReason)            {}
func (noMetrics) ConnectionRefused(string)                        {}
func (noMetrics) ConnectionDelayed(string, time.Duration)         {}
func (noMetrics) RequestReceived(int16, int16, int)               {}
func (noMetrics) ResponseSent(int16, int16, int64, time.Duration) {}
func (noMetrics) HandlerPanic(int16)                              {}

// CloseReason says why a connection ended.
type CloseReason uint8

// The reasons. The first four are ordinary ends.
const (
	ClientClosed       CloseReason = iota // the client closed it between frames
	IdleTimeout                           // nothing was received for too long
	ServerClosed                          // the server stopped
	SurplusConnection                     // there were too many connections
	TruncatedFrame                        // the client closed it inside a frame
	StalledFrame                          // a frame began and did not go on
	OversizedFrame                        // a size above the limit, or negative
	BadFrame                              // a header or body that does not follow its schema
	UnsupportedVersion                    // a key and version that are not served
	NotAuthenticated                      // refused by the gate of the listener
	HandlerClosed                         // the handler asked for it
	HandlerPanicked                       // the handler panicked
	ShortFile                             // a file range could not be read to its end
	WriteTimeout                          // the client did not take its responses
	WriteFailed                           // writing failed otherwise
	ReadFailed                            // reading failed otherwise
	reasons                               // their number
)

var reasonNames = [reasons]string{
	"client closed", "idle timeout", "server closed", "too many connections", "truncated frame", "stalled frame",
	"oversized frame", "bad frame", "unsupported version", "not authenticated", "closed by handler", "handler panicked",
	"short file", "write timeout", "write failed", "read failed",
}

// String is the reason in words.
func (r CloseReason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// ordinary reasons are not worth a line in the log.
func (r CloseReason) ordinary() bool { return r <= SurplusConnection }
