// windows reads questions, a JSON object a line, and answers each with a line of as many 0 and 1 as it has moments.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"slices"
	"time"
)

// span is a first and a last day: [year, month, day], or [month, day] of every year.
type span struct {
	First []int `json:"first"`
	Last  []int `json:"last"`
}

type question struct {
	Zone    string   `json:"zone"`
	From    string   `json:"from"` // 22:00
	To      string   `json:"to"`
	Days    []string `json:"days"` // Monday
	Dates   []span   `json:"dates"`
	Moments []int64  `json:"moments"`
}

func (s span) has(day time.Time) bool {
	today := []int{day.Year(), int(day.Month()), day.Day()}
	today = today[3-len(s.First):]
	after, before := slices.Compare(today, s.First) >= 0, slices.Compare(today, s.Last) <= 0
	if slices.Compare(s.First, s.Last) <= 0 {
		return after && before
	}
	return after || before // over New Year
}

func (q question) isOn(day time.Time) bool {
	if len(q.Days) > 0 && !slices.Contains(q.Days, day.Weekday().String()) {
		return false
	}
	return len(q.Dates) == 0 || slices.ContainsFunc(q.Dates, func(s span) bool { return s.has(day) })
}

func (q question) covers(local time.Time) bool {
	clock := local.Format("15:04")
	today := time.Date(local.Year(), local.Month(), local.Day(), 12, 0, 0, 0, time.UTC)
	if q.From < q.To {
		return q.From <= clock && clock < q.To && q.isOn(today)
	}
	return clock >= q.From && q.isOn(today) || clock < q.To && q.isOn(today.AddDate(0, 0, -1))
}

func main() {
	lines, answers := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	decoder := json.NewDecoder(lines)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		zone, err := time.LoadLocation(asked.Zone)
		if err != nil {
			log.Fatal(err)
		}
		for _, moment := range asked.Moments {
			answer := byte('0')
			if asked.covers(time.Unix(moment, 0).In(zone)) {
				answer = '1'
			}
			answers.WriteByte(answer)
		}
		answers.WriteByte('\n')
	}
	if err := answers.Flush(); err != nil {
		log.Fatal(err)
	}
}
