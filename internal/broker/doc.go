// Package broker puts the parts of a broker together: it opens the log directories and the metadata log, loads the
// partitions, registers the broker, and opens the listeners when every partition answers. It owns the order of
// start and stop, the one scheduler, the real clock and the admin port.
//
// Start, in order: lock the log directories → replay the metadata log → load and recover the partitions → take on
// the roles of the newest image → register and unfence the broker (leader epochs rise) → serve. Stop is the reverse;
// the clean markers are written last.
//
// Concurrency: a [Broker] is started once and stopped once; its other methods may be called by any goroutine.
package broker
