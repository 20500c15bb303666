//go:build oracle

package bench

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// document is what is known so far. Its JSON is bench.json; names and meanings of its fields stay, new ones may come.
type document struct {
	Format  int            `json:"format"`  // 1
	Date    string         `json:"date"`    // when this was written, UTC
	Command string         `json:"command"` // that which began it
	Machine machine        `json:"machine"`
	Targets []targetResult `json:"targets"` // those whose case was measured
	Cases   []result       `json:"cases"`
	Growth  []growth       `json:"growth"`
}

// targetResult is a target and what was measured. Kafka and Tidemark are means of the rounds.
type targetResult struct {
	target
	Kafka    float64 `json:"kafka"`
	Tidemark float64 `json:"tidemark"`
	Ratio    float64 `json:"ratio"`          // Tidemark ÷ Kafka
	Bare     float64 `json:"bare,omitempty"` // the bare server ÷ Kafka
	Met      bool    `json:"met"`
	lowest   float64 // ratio of a round
	highest  float64
	few      [2]string // marks of quantiles, of Kafka and of Tidemark
}

// result is one case.
type result struct {
	Name                string  `json:"name"`
	Group               string  `json:"group"` // cases of a group were measured with the same running brokers
	Target              bool    `json:"target"`
	Unit                string  `json:"unit,omitempty"` // what an operation is
	Date                string  `json:"date"`           // when it began, UTC
	Core                *int    `json:"core,omitempty"` // that the broker was bound to
	KafkaWarmSeconds    float64 `json:"kafkaWarmSeconds"`
	TidemarkWarmSeconds float64 `json:"tidemarkWarmSeconds"`
	Seconds             float64 `json:"seconds"` // counted in each round
	Failure             string  `json:"failure,omitempty"`
	Rounds              []round `json:"rounds"`
}

// round is one turn of both. The names of figures are those of the list in labels, and samples.
type round struct {
	Kafka    figures `json:"kafka"`
	Tidemark figures `json:"tidemark"`
	Bare     figures `json:"bare,omitempty"` // of the bare server
}

// growth is a curve.
type growth struct {
	Name   string  `json:"name"`
	Figure string  `json:"figure"` // the figure that is shown
	Unit   string  `json:"unit,omitempty"`
	Points []point `json:"points"`
}

// point is one size of a curve.
type point struct {
	Size    int     `json:"size"`
	Failure string  `json:"failure,omitempty"`
	Rounds  []round `json:"rounds"`
}

// shared is the document of all benchmarks of this process.
var shared *document

// openDocument returns the document; the first time it is new, or with -add that of bench.json.
func openDocument() (*document, error) {
	if shared != nil {
		return shared, nil
	}
	d := &document{}
	if *addFlag && *outFlag != "" {
		text, err := os.ReadFile(filepath.Join(*outFlag, "bench.json"))
		if err == nil {
			err = json.Unmarshal(text, d)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	d.Format, d.Command = 1, command()
	var err error
	if d.Machine, err = thisMachine(); err != nil {
		return nil, err
	}
	shared = d
	return d, nil
}

// addCase notes a case, in the place of an earlier one of that name.
func (d *document) addCase(r result) error {
	d.Cases = slices.DeleteFunc(d.Cases, func(old result) bool { return old.Name == r.Name })
	d.Cases = append(d.Cases, r)
	order := caseNames()
	slices.SortStableFunc(d.Cases, func(a, b result) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	return d.write()
}

// caseNames are all cases, in the order of the document.
func caseNames() (names []string) {
	for _, g := range groups() {
		for _, t := range g.trials {
			names = append(names, t.name)
		}
	}
	return append(names, startClean, startKilled)
}

// addPoint notes a point of a curve, in the place of an earlier one of that size.
func (d *document) addPoint(c *curve, p point) error {
	i := slices.IndexFunc(d.Growth, func(g growth) bool { return g.Name == c.name })
	if i < 0 {
		i = len(d.Growth)
		d.Growth = append(d.Growth, growth{Name: c.name, Figure: c.figure, Unit: c.unit})
	}
	g := &d.Growth[i]
	g.Points = slices.DeleteFunc(g.Points, func(old point) bool { return old.Size == p.Size })
	g.Points = append(g.Points, p)
	slices.SortFunc(g.Points, func(a, b point) int { return a.Size - b.Size })
	return d.write()
}

// reach compares a target with what was measured.
func (d *document) reach(t target) (r targetResult, ok bool) {
	i := slices.IndexFunc(d.Cases, func(r result) bool { return r.Name == t.Case })
	if i < 0 || len(d.Cases[i].Rounds) == 0 {
		return r, false
	}
	c := compare(d.Cases[i].Rounds, t.Figure)
	r = targetResult{target: t, Kafka: c.kafka, Tidemark: c.tidemark, Ratio: c.ratio, lowest: c.lowest,
		highest: c.highest, Bare: c.bare / c.kafka, few: d.Cases[i].few(t.Figure)}
	r.Met = r.Ratio <= t.Limit
	if t.AtLeast {
		r.Met = r.Ratio >= t.Limit
	}
	return r, true
}

// comparison is one figure of both, as means of rounds, and the ratio with its spread.
type comparison struct{ kafka, tidemark, bare, ratio, lowest, highest float64 }

func compare(rounds []round, figure string) (c comparison) {
	for i, r := range rounds {
		c.kafka += r.Kafka[figure] / float64(len(rounds))
		c.tidemark += r.Tidemark[figure] / float64(len(rounds))
		c.bare += r.Bare[figure] / float64(len(rounds))
		ratio := r.Tidemark[figure] / r.Kafka[figure]
		if c.highest = max(c.highest, ratio); i == 0 || ratio < c.lowest {
			c.lowest = ratio
		}
	}
	c.ratio = c.tidemark / c.kafka
	return c
}

// judge compares all targets whose case was measured.
func (d *document) judge() {
	d.Targets = nil
	for _, t := range targets {
		if r, ok := d.reach(t); ok {
			d.Targets = append(d.Targets, r)
		}
	}
}

// write writes both files, whole or not at all.
func (d *document) write() error {
	d.Date = time.Now().UTC().Format(time.RFC3339)
	d.judge()
	if *outFlag == "" {
		return nil
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"bench.json": append(text, '\n'), "bench.md": []byte(d.markdown())} {
		name = filepath.Join(*outFlag, name)
		err = errors.Join(err, os.WriteFile(name+".new", text, 0o644), os.Rename(name+".new", name))
	}
	return err
}
