package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/internal/inspect"
)

const logTxnsHelp = `Txns lists the transactions of partitions, from the batches and markers in the log: producer,
offsets of the first record and of the marker, times, and how it ended. Open ones come last;
readers of committed records get no further than the first of them (the last stable offset).

A transaction is printed when its marker is met. In memory are those that are open at that point, and the last batches
of each producer id in the log.

--json: objects of type "transaction", and for each partition one of type "transactions".`

const logTxnsExample = `  tidemark log txns /var/lib/kafka/orders-0
  tidemark log txns --state open /var/lib/kafka
  tidemark log txns --json /var/lib/kafka/orders-0 | jq -c 'select(.state == "aborted")'`

var txnStates = []string{"committed", "aborted", "open"}

func logTxnsCommand(o *logOptions) *cobra.Command {
	var states []string
	c := &cobra.Command{
		Use: "txns DIR...", Short: "List transactions: committed, aborted, open",
		Long: logTxnsHelp, Example: logTxnsExample,
		RunE: func(_ *cobra.Command, args []string) error {
			for _, s := range states {
				if !slices.Contains(txnStates, s) {
					return fmt.Errorf("--state %s: want one of %s", s, strings.Join(txnStates, ", "))
				}
			}
			return o.transactions(args, states)
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "only transactions in these states: "+strings.Join(txnStates, ", "))
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(txnStates, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *logOptions) transactions(args, states []string) error {
	zone, err := o.location()
	if err != nil {
		return err
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	bar := o.startProgress("txns", targets)
	defer bar.end()
	return o.each(targets, func(t inspect.Target) error {
		s, err := inspect.Transactions(o.fs, t, bar.add, func(x inspect.Transaction) error {
			if len(states) > 0 && !slices.Contains(states, x.State) {
				return nil
			}
			return o.printTransaction(x, zone)
		})
		if err != nil {
			return err
		}
		if o.json {
			return o.emit(s)
		}
		_, err = fmt.Fprintf(o.env.Stdout, "%s-%d: %d committed, %d aborted, %d open; last stable offset %d of %d\n",
			s.Topic, s.Partition, s.Committed, s.Aborted, s.Open, s.LastStableOffset, s.EndOffset)
		return err
	})
}

func (o *logOptions) printTransaction(x inspect.Transaction, zone *time.Location) error {
	if o.json {
		return o.emit(x)
	}
	end := fmt.Sprintf("marker %d", x.MarkerOffset)
	if x.MarkerOffset < 0 {
		end = "no marker"
	}
	_, err := fmt.Fprintf(o.env.Stdout,
		"%s-%d  %-9s  producer %d epoch %d  offsets from %d, %s  %s to %s  %d records, %s\n",
		x.Topic, x.Partition, x.State, x.ProducerID, x.ProducerEpoch, x.FirstOffset, end,
		inspect.FormatTime(x.FirstTime, zone), inspect.FormatTime(x.EndTime, zone), x.Records, humanBytes(x.Bytes))
	return err
}
