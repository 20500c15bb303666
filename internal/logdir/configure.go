package logdir

import "slices"

// Dynamic is the settings that can change while the broker runs.
type Dynamic struct {
	RecoveryThreadsPerDataDir int      // num.recovery.threads.per.data.dir
	ProducerIDExpirationMs    int64    // producer.id.expiration.ms
	VerifyTransactions        bool     // transaction.partition.verification.enable
	Cordoned                  []string // cordoned.log.dirs: they take no new partitions while there are others
}

// Configure puts settings in force, for the logs that there are and those to come.
func (s *Set) Configure(d Dynamic) {
	s.mu.Lock()
	c := &s.opts.Settings
	same := c.ProducerIDExpirationMs == d.ProducerIDExpirationMs && c.VerifyTransactions == d.VerifyTransactions
	c.RecoveryThreadsPerDataDir = d.RecoveryThreadsPerDataDir
	c.ProducerIDExpirationMs, c.VerifyTransactions = d.ProducerIDExpirationMs, d.VerifyTransactions
	s.cordoned = slices.Clone(d.Cordoned)
	s.mu.Unlock()
	if same {
		return
	}
	for _, dir := range s.dirs {
		for _, log := range s.online(dir) {
			log.ConfigureProducers(d.ProducerIDExpirationMs, d.VerifyTransactions)
		}
	}
}

func (s *Set) settings() Settings {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.opts.Settings
}
