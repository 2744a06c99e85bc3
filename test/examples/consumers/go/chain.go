package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// storedForm is the one form in which events are stored. Its parts are canonical JSON (RFC 8785)
// already, so hashes are taken of the text as it is, and nothing has to be parsed or written anew.
var storedForm = regexp.MustCompile("(?s)^" + regexp.MustCompile(`T<(\w+)>`).ReplaceAllString(
	`\{"id":T<id>,"timestamp":T<timestamp>`+
		`,"actor":\{"id":T<actorID>,"type":T<actorType>(?:,"email":T<email>)?\}`+
		`,"action":T<action>`+
		`,"resource":\{"id":T<resourceID>,"type":T<resourceType>(?:,"name":T<name>)?\}`+
		`,"outcome":T<outcome>(?:,"metadata":(?P<metadata>\{.*\}))?`+
		`,"tenant_id":T<tenant>,"sequence_number":(?P<sequence>[1-9][0-9]{0,15})`+
		`,"created_at":T<createdAt>,"prev_hash":T<prevHash>`+
		`(?:,"details_salt":T<salt>,"details_hash":T<detailsHash>)?`+
		`,"content_hash":T<contentHash>,"hash":T<hash>\}$`,
	`"(?P<$1>(?:[^"\\]|\\.)*)"`))

var erased = regexp.MustCompile(`"sequence_number":([0-9]+)`)

const shownBytes = 80

// event has the parts of a stored event as they are in the record; what it lacks is empty.
type event map[string]string

func eventOf(record string) event {
	found := storedForm.FindStringSubmatchIndex(record)
	if found == nil {
		return nil
	}
	parts := event{}
	for group, name := range storedForm.SubexpNames() {
		if start := found[2*group]; name != "" && start >= 0 {
			parts[name] = record[start:found[2*group+1]]
		}
	}
	return parts
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// detailsHash is that of what may be erased elsewhere: e-mail, metadata, name of the resource.
func (e event) detailsHash() string {
	var details []string
	if email, has := e["email"]; has {
		details = append(details, `"actor_email":"`+email+`"`)
	}
	if metadata, has := e["metadata"]; has {
		details = append(details, `"metadata":`+metadata)
	}
	if name, has := e["name"]; has {
		details = append(details, `"resource_name":"`+name+`"`)
	}
	if details == nil {
		return ""
	}
	return hashOf(e["salt"] + "\n{" + strings.Join(details, ",") + "}")
}

func (e event) contentHash() string {
	detailsHash := ""
	if hash, has := e["detailsHash"]; has {
		detailsHash = `,"details_hash":"` + hash + `"`
	}
	return hashOf(`{"action":"` + e["action"] + `","actor":{"id":"` + e["actorID"] +
		`","type":"` + e["actorType"] + `"}` + detailsHash +
		`,"id":"` + e["id"] + `","outcome":"` + e["outcome"] +
		`","resource":{"id":"` + e["resourceID"] + `","type":"` + e["resourceType"] +
		`"},"timestamp":"` + e["timestamp"] + `"}`)
}

func (e event) linkHash() string {
	return hashOf(strings.Join([]string{"alk-chain-v1", e["tenant"], e["sequence"], e["createdAt"],
		e["contentHash"], e["prevHash"]}, "\n"))
}

// head is what the next event of a tenant has to follow.
type head struct {
	sequence int64
	hash     string
}

// chainCheck takes records in the order of their partitions and prints a line for each break.
type chainCheck struct {
	// isPartial: the topic has lost its beginning, so a tenant may begin at any number.
	isPartial      bool
	heads          map[string]head
	events, breaks int
}

func (c *chainCheck) take(partition int32, offset int64, key, record string) {
	c.events++
	place := fmt.Sprintf("partition %d offset %d", partition, offset)
	e := eventOf(record)
	if e == nil {
		shown := record[:min(shownBytes, len(record))]
		c.report("tenant %s sequence ? (%s): record is %q, expected a stored event", key, place, shown)
		return
	}
	tenant := e["tenant"]
	sequence, _ := strconv.ParseInt(e["sequence"], 10, 64)
	if member, found, expected := c.wrong(e, sequence); member != "" {
		c.report("tenant %s sequence %d (%s): %s is %s, expected %s",
			tenant, sequence, place, member, or(found, "absent"), or(expected, "none"))
	} else if number := erased.FindStringSubmatch(e["metadata"]); number != nil && e["action"] == "alk.event.erased" {
		// The topic keeps the details; whoever has copied them has to delete them.
		fmt.Printf("erased: tenant %s sequence %s: delete its details from your copies\n", tenant, number[1])
	}
	c.heads[tenant] = head{sequence, e["hash"]}
}

// wrong names the first member that is not what it has to be.
func (c *chainCheck) wrong(e event, sequence int64) (member, found, expected string) {
	last, known := c.heads[e["tenant"]]
	if !known {
		last = head{0, strings.Repeat("0", 64)}
		if c.isPartial && sequence > 1 {
			last = head{sequence - 1, e["prevHash"]}
		}
	}
	for _, one := range [][3]string{
		{"details_hash", e["detailsHash"], e.detailsHash()},
		{"content_hash", e["contentHash"], e.contentHash()},
		{"sequence_number", e["sequence"], strconv.FormatInt(last.sequence+1, 10)},
		{"prev_hash", e["prevHash"], last.hash},
		{"hash", e["hash"], e.linkHash()},
	} {
		if one[1] != one[2] {
			return one[0], one[1], one[2]
		}
	}
	return "", "", ""
}

func (c *chainCheck) report(form string, values ...any) {
	c.breaks++
	fmt.Printf("broken: "+form+"\n", values...)
}

// finish prints what was found in all and gives the exit code, 1 after a break.
func (c *chainCheck) finish() int {
	seen := fmt.Sprintf("%d events of %d tenants", c.events, len(c.heads))
	if c.breaks > 0 {
		fmt.Printf("broken: %d breaks in %s\n", c.breaks, seen)
		return 1
	}
	fmt.Println("intact: " + seen)
	return 0
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
