// Package bank moves money between accounts in transactions while brokers and clients are killed, and checks that no
// reader of committed records ever sees a transfer by half.
package bank

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

const (
	topic      = "ledger"
	partitions = 5
	tellers    = 4
	rounds     = 4 // of the broker's life, and more where the machine is slow
	maxRounds  = 40
	roundTime  = 1500 * time.Millisecond
)

// entry is one half of a transfer.
type entry struct {
	Transfer string
	Account  int32 // its partition
	Amount   int
}

// bank is the broker under test, and what the tellers know of their transfers.
type bank struct {
	t    *testing.T
	dir  string
	port int
	p    *proc.Process

	mu        sync.Mutex
	committed map[string]bool // transfers whose commit was confirmed
	aborted   map[string]bool // transfers whose abort was confirmed
	begun     int
}

func (b *bank) open() {
	b.p, _ = proc.Serve(b.t, b.dir, b.port, "--log-level", "warn")
}

func (b *bank) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// TestBank kills the broker again and again under tellers who are killed themselves. Afterwards every transfer whose
// commit was confirmed is there with both halves, none whose abort was confirmed, and every other one whole or not at
// all.
func TestBank(t *testing.T) {
	b := &bank{t: t, dir: t.TempDir(), port: proc.FreePorts(t, 1)[0], committed: map[string]bool{},
		aborted: map[string]bool{}}
	b.open()
	b.createTopic()
	for round := 0; round < rounds || round < maxRounds && !b.enough(); round++ {
		ctx, stop := context.WithTimeout(context.Background(), roundTime)
		var work sync.WaitGroup
		for i := range tellers {
			work.Go(func() { b.teller(ctx, fmt.Sprintf("teller-%d", i), round) })
		}
		if round%2 == 0 {
			time.Sleep(roundTime / 2)
			b.p.Kill(t) // under load
			b.open()
			work.Wait()
		} else {
			work.Wait() // their last transactions stay open
			b.p.Kill(t)
			b.open()
		}
		stop()
	}
	b.fenceTellers()
	b.audit()
}

// enough tells whether there is something to audit.
func (b *bank) enough() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.committed) >= rounds*tellers
}

func (b *bank) createTopic() {
	client := b.client()
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(context.Background(), partitions, 1, nil, topic); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bank) client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr()), kgo.RetryTimeout(20 * time.Second)}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bank) producer(id string) *kgo.Client {
	return b.client(kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(30*time.Second))
}

// teller transfers until ctx ends. Now and then it is killed in the middle, and another takes its place.
func (b *bank) teller(ctx context.Context, id string, round int) {
	rng := rand.New(rand.NewPCG(uint64(round), uint64(id[len(id)-1])))
	client := b.producer(id)
	defer func() { client.Close() }()
	for n := 0; ctx.Err() == nil; n++ {
		if rng.IntN(20) == 0 {
			client.Close() // with whatever is under way
			client = b.producer(id)
		}
		name := fmt.Sprintf("%s.%d.%d", id, round, n)
		if !b.transfer(ctx, client, name, rng) {
			client.Close()
			client = b.producer(id)
		}
	}
}

// transfer moves money from one account to another. It reports false when the producer cannot go on.
func (b *bank) transfer(ctx context.Context, client *kgo.Client, name string, rng *rand.Rand) bool {
	if err := client.BeginTransaction(); err != nil {
		return false
	}
	b.mu.Lock()
	b.begun++
	b.mu.Unlock()
	from := rng.Int32N(partitions)
	to := (from + 1 + rng.Int32N(partitions-1)) % partitions
	amount := 1 + rng.IntN(100)
	halves := []*kgo.Record{half(name, from, -amount), half(name, to, amount)}
	if client.ProduceSync(ctx, halves...).FirstErr() != nil {
		return false // left open: the next producer with this id aborts it
	}
	if rng.IntN(30) == 0 {
		return false // the teller dies before it decides
	}
	commit := rng.IntN(4) > 0
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return false // nobody knows the outcome
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if commit {
		b.committed[name] = true
	} else {
		b.aborted[name] = true
	}
	return true
}

func half(transfer string, account int32, amount int) *kgo.Record {
	value, err := json.Marshal(entry{transfer, account, amount})
	if err != nil {
		panic(err) // a struct of strings and numbers always marshals
	}
	return &kgo.Record{Partition: account, Value: value}
}

// fenceTellers ends the transactions that are still open.
func (b *bank) fenceTellers() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for i := range tellers {
		client := b.producer(fmt.Sprintf("teller-%d", i))
		for {
			if _, _, err := client.ProducerID(ctx); err == nil {
				break
			} else if ctx.Err() != nil {
				b.t.Fatalf("teller %d: %v", i, err)
			}
		}
		client.Close()
	}
}

// audit reads all that is committed, up to the end, and holds it against what the tellers know.
func (b *bank) audit() {
	halves := map[string][]entry{}
	balance := 0
	for _, e := range b.read() {
		halves[e.Transfer] = append(halves[e.Transfer], e)
		balance += e.Amount
	}
	if balance != 0 {
		b.t.Errorf("the sum of all accounts is %d, not 0", balance)
	}
	for name, both := range halves {
		if len(both) != 2 || both[0].Amount != -both[1].Amount {
			b.t.Errorf("transfer %s is there by half: %v", name, both)
		}
		if b.aborted[name] {
			b.t.Errorf("transfer %s was aborted and is there", name)
		}
	}
	for name := range b.committed {
		if len(halves[name]) != 2 {
			b.t.Errorf("transfer %s was committed and is not there", name)
		}
	}
	b.t.Logf("%d transfers begun, %d confirmed, %d aborted, %d read", b.begun, len(b.committed), len(b.aborted),
		len(halves))
	if !b.enough() {
		b.t.Errorf("only %d transfers were confirmed", len(b.committed))
	}
}

func (b *bank) read() []entry {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	admin := b.client()
	defer admin.Close()
	ends, err := kadm.NewClient(admin).ListEndOffsets(ctx, topic)
	if err != nil {
		b.t.Fatal(err)
	}
	reader := b.client(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer reader.Close()
	var all []entry
	left := map[int32]bool{}
	ends.Each(func(o kadm.ListedOffset) { left[o.Partition] = o.Offset > 0 })
	for waiting(left) {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			b.t.Fatalf("read: %v; partitions that are not read: %v", err, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, _ := ends.Lookup(topic, r.Partition)
			left[r.Partition] = r.Offset+1 < end.Offset
			if r.Attrs.IsControl() {
				return
			}
			var e entry
			if err := json.Unmarshal(r.Value, &e); err != nil {
				b.t.Fatal(err)
			}
			all = append(all, e)
		})
	}
	return all
}

func waiting(left map[int32]bool) bool {
	for _, l := range left {
		if l {
			return true
		}
	}
	return false
}
