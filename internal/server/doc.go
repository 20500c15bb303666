// Package server accepts connections, cuts their bytes into requests and writes
// the answers back in order. It knows a [protocol.Handler] and nothing of what
// is above.
//
// Each connection has two goroutines. The reader takes one frame after the
// other and calls the handler; the writer sends responses in the order of their
// requests, however late each is answered. A request that waits (a parked
// fetch) has no goroutine and no timer of its own, and causes no wake-up.
//
// Everything is bounded: the size of a frame, the memory that a frame may take
// before its bytes have arrived, requests in flight per connection, request
// bytes of all connections together, connections in total and per address, how
// fast new ones may come, and reads of file pages that are not in memory.
//
// A response may hold ranges of files. Those in memory go to the socket through
// pipes or by sendfile, at explicit positions; cold ones are read into buffers first, a
// bounded number at a time, so that a slow disk does not hold up connections
// that need nothing of it.
//
// Locks: Server.mu and conn.mu are never held together, nor while the handler or
// a Release function runs; that of the limits may be taken under Server.mu.
//
// Source: Apache Kafka 4.3.1 SocketServer, KIP-612; its reactions to bad frames
// and to limits were measured.
package server
