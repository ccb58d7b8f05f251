const rows = [11, 12, 13];
const letters = ["A", "B", "", "C", "D"];
const taken = new Set(["11B", "12C", "13A"]);

/** What the client tool `choose_seat` shows. */
export function SeatMap({ onChoose }: { onChoose: (seat: string) => void }) {
  return (
    <fieldset className="seats">
      <legend>Choose a seat</legend>
      {rows.map((row) => (
        <div key={row}>
          {letters.map((letter) =>
            letter === "" ? (
              <span key={letter}>{row}</span>
            ) : (
              <button
                key={letter}
                type="button"
                disabled={taken.has(`${row}${letter}`)}
                onClick={() => onChoose(`${row}${letter}`)}
                aria-label={`Seat ${row}${letter}`}
              >
                {letter}
              </button>
            ),
          )}
        </div>
      ))}
    </fieldset>
  );
}
