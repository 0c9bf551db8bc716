"""Write what is made from the catalogue: `python -m infra.watching` writes infra/grafana anew."""

from infra.watching.files import write

if __name__ == "__main__":
    write()
