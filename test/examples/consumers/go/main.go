// Reads alk.events from its beginning with franz-go and checks the chains while it reads.
//
//	go run . [--until-end] [--partial] [topic]
//
// KAFKA_BROKERS, KAFKA_TLS, KAFKA_TLS_CA_FILE and KAFKA_SASL_* say how to connect. Exit code 1: a
// break, each of which has a line.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func options(topic string) ([]kgo.Opt, error) {
	result := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(or(os.Getenv("KAFKA_BROKERS"), "127.0.0.1:9092"), ",")...),
		kgo.ClientID("chain-check"),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// A partition ends with the mark of a transaction, so the end is where a mark is.
		kgo.KeepControlRecords(),
	}
	if os.Getenv("KAFKA_TLS") == "true" {
		config := &tls.Config{}
		if file := os.Getenv("KAFKA_TLS_CA_FILE"); file != "" {
			authority, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			config.RootCAs = x509.NewCertPool()
			config.RootCAs.AppendCertsFromPEM(authority)
		}
		result = append(result, kgo.DialTLSConfig(config))
	}
	user, password := os.Getenv("KAFKA_SASL_USERNAME"), os.Getenv("KAFKA_SASL_PASSWORD")
	switch mechanism := os.Getenv("KAFKA_SASL_MECHANISM"); {
	case user == "":
	case mechanism == "scram-sha-256":
		result = append(result, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case mechanism == "scram-sha-512":
		result = append(result, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	default:
		result = append(result, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	}
	return result, nil
}

// endsOf says where each partition that holds something ends.
func endsOf(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	committed, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	committed.Each(func(end kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, end.Partition); end.Offset > start.Offset {
			ends[end.Partition] = end.Offset
		}
	})
	return ends, committed.Error()
}

func read(ctx context.Context, check *chainCheck, topic string, untilEnd bool) error {
	given, err := options(topic)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(given...)
	if err != nil {
		return err
	}
	defer client.Close()
	var ends map[int32]int64
	if untilEnd {
		if ends, err = endsOf(ctx, client, topic); err != nil {
			return err
		}
	}
	for !untilEnd || len(ends) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if end, has := ends[record.Partition]; has && record.Offset+1 >= end {
				delete(ends, record.Partition)
			}
			if !record.Attrs.IsControl() {
				check.take(record.Partition, record.Offset, string(record.Key), string(record.Value))
			}
		})
	}
	return nil
}

func main() {
	untilEnd := flag.Bool("until-end", false, "stop where the topic ends now")
	isPartial := flag.Bool("partial", false, "the topic has lost its beginning to ALK_EVENTS_RETENTION")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check := &chainCheck{isPartial: *isPartial, heads: map[string]head{}}
	if err := read(ctx, check, or(flag.Arg(0), "alk.events"), *untilEnd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(check.finish())
}
